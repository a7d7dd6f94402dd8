#include "fleetfit/store/copy.h"

namespace fleetfit::store {
namespace {

constexpr std::size_t kBatch = 1000;

class Copy {
 public:
  Copy(Store& from, Store& to, const std::function<void(const CopyCounts&)>& on_batch)
      : from_(from), to_(to), on_batch_(on_batch) {}

  Result<CopyCounts> run() {
    if (auto empty = check_empty(); !empty) return tl::unexpected(std::move(empty.error()));
    for (const auto step : {&Copy::devices, &Copy::models, &Copy::kernel_choices,
                            &Copy::measurements, &Copy::studies, &Copy::inferences}) {
      if (auto done = (this->*step)(); !done) return tl::unexpected(std::move(done.error()));
      note();
    }
    return counts_;
  }

 private:
  void note() const {
    if (on_batch_) on_batch_(counts_);
  }

  Status check_empty() {
    const auto devices = to_.list_devices();
    if (!devices) return tl::unexpected(devices.error());
    const auto models = to_.list_models();
    if (!models) return tl::unexpected(models.error());
    const auto measurements = to_.list_measurements_after(0, 1);
    if (!measurements) return tl::unexpected(measurements.error());
    const auto studies = to_.studies().list_studies();
    if (!studies) return tl::unexpected(studies.error());
    const auto cpus = to_.list_kernel_cpus();
    if (!cpus) return tl::unexpected(cpus.error());
    if (devices->empty() && models->empty() && measurements->empty() && studies->empty() &&
        cpus->empty())
      return {};
    return fail(ErrorCode::invalid_input, "there is something in the store that is copied to");
  }

  Status devices() {
    const auto list = from_.list_devices();
    if (!list) return tl::unexpected(list.error());
    for (const auto& device : *list)
      if (auto saved = to_.save_device(device); !saved) return saved;
    counts_.devices = static_cast<std::int64_t>(list->size());
    return {};
  }

  Status models() {
    const auto list = from_.list_models();
    if (!list) return tl::unexpected(list.error());
    for (const auto& model : *list)
      if (auto saved = to_.save_model(model); !saved) return saved;
    counts_.models = static_cast<std::int64_t>(list->size());
    return {};
  }

  Status kernel_choices() {
    const auto cpus = from_.list_kernel_cpus();
    if (!cpus) return tl::unexpected(cpus.error());
    for (const auto& cpu : *cpus) {
      const auto choices = from_.list_kernel_choices(cpu);
      if (!choices) return tl::unexpected(choices.error());
      if (auto saved = to_.save_kernel_choices(*choices); !saved) return saved;
      counts_.kernel_choices += static_cast<std::int64_t>(choices->size());
    }
    return {};
  }

  Status measurements() {
    for (std::int64_t last = 0;;) {
      const auto batch = from_.list_measurements_after(last, kBatch);
      if (!batch) return tl::unexpected(batch.error());
      if (batch->empty()) return {};
      const auto added = to_.add_measurements(*batch);
      if (!added) return tl::unexpected(added.error());
      last = batch->back().id;
      counts_.measurements += static_cast<std::int64_t>(batch->size());
      note();
    }
  }

  Status studies() {
    const auto list = from_.studies().list_studies();
    if (!list) return tl::unexpected(list.error());
    for (const auto& study : *list) {
      if (auto created = to_.studies().create_study(study); !created) return created;
      if (auto copied = trials(study.name); !copied) return copied;
      ++counts_.studies;
    }
    return {};
  }

  Status trials(const std::string& study) {
    for (std::int64_t next = 0;;) {
      const auto batch = from_.studies().list_trials(study, next, kBatch, LevelDetail::all);
      if (!batch) return tl::unexpected(batch.error());
      if (batch->empty()) return {};
      const auto added = to_.studies().add_trials(study, *batch);
      if (!added) return tl::unexpected(added.error());
      if (!*added)
        return fail(ErrorCode::invalid_input,
                    "somebody else writes to the store that is copied to");
      next = batch->back().number + 1;
      counts_.trials += static_cast<std::int64_t>(batch->size());
      note();
    }
  }

  Status inferences() {
    const auto list = from_.studies().list_inferences("");
    if (!list) return tl::unexpected(list.error());
    for (const auto& inference : *list)
      if (auto saved = to_.studies().save_inference(inference); !saved) return saved;
    counts_.inferences = static_cast<std::int64_t>(list->size());
    return {};
  }

  Store& from_;
  Store& to_;
  const std::function<void(const CopyCounts&)>& on_batch_;
  CopyCounts counts_;
};

}  // namespace

Result<CopyCounts> copy_records(Store& from, Store& to,
                                const std::function<void(const CopyCounts&)>& on_batch) {
  return Copy(from, to, on_batch).run();
}

}  // namespace fleetfit::store
