#include "fleetfit/store/copy.h"

#include <limits>

namespace fleetfit::store {
namespace {

constexpr std::size_t kBatch = 1000;

class Copy {
 public:
  Copy(Store& from, Store& to, const std::function<void(const CopyCounts&)>& on_batch)
      : from_(from), to_(to), on_batch_(on_batch) {}

  Result<CopyCounts> run() {
    if (auto empty = check_empty(); !empty) return tl::unexpected(std::move(empty.error()));
    for (const auto step :
         {&Copy::devices, &Copy::models, &Copy::kernel_choices, &Copy::measurements, &Copy::studies,
          &Copy::inferences, &Copy::tokens, &Copy::agents, &Copy::jobs, &Copy::events, &Copy::files,
          &Copy::audit}) {
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
    const auto has_fleet = is_fleet_there();
    if (!has_fleet) return tl::unexpected(has_fleet.error());
    if (devices->empty() && models->empty() && measurements->empty() && studies->empty() &&
        cpus->empty() && !*has_fleet)
      return {};
    return fail(ErrorCode::invalid_input, "there is something in the store that is copied to");
  }

  Result<bool> is_fleet_there() {
    auto& fleet = to_.fleet();
    const auto tokens = fleet.list_tokens();
    if (!tokens) return tl::unexpected(tokens.error());
    const auto agents = fleet.list_agents({.limit = 1, .probes = false});
    if (!agents) return tl::unexpected(agents.error());
    const auto jobs = fleet.list_jobs({.limit = 1, .details = false});
    if (!jobs) return tl::unexpected(jobs.error());
    const auto event = fleet.newest_event();
    if (!event) return tl::unexpected(event.error());
    return !tokens->empty() || !agents->empty() || !jobs->empty() || *event > 0;
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

  // Adds a batch of one kind of the fleet's records.
  template <class Record, class Place>
  Status restore(Result<std::vector<Record>> batch, Place place, std::int64_t& count) {
    if (!batch) return tl::unexpected(batch.error());
    FleetRecords records;
    records.*place = *std::move(batch);
    return restore(records, (records.*place).size(), count);
  }
  Status restore(const FleetRecords& records, std::size_t size, std::int64_t& count) {
    if (auto restored = to_.fleet().restore(records); !restored) return restored;
    count += static_cast<std::int64_t>(size);
    note();
    return {};
  }

  Status tokens() {
    return restore(from_.fleet().list_tokens(), &FleetRecords::tokens, counts_.tokens);
  }

  Status agents() {
    for (std::string last;;) {
      auto batch = from_.fleet().list_agents({.after = last, .limit = kBatch});
      if (!batch) return tl::unexpected(batch.error());
      if (batch->empty()) return {};
      last = batch->back().name;
      FleetRecords records{.agents = *std::move(batch)};
      for (const auto& agent : records.agents) {
        const auto sequence = from_.fleet().last_sequence(agent.name);
        if (!sequence) return tl::unexpected(sequence.error());
        if (*sequence > 0) records.sequences.emplace(agent.name, *sequence);
      }
      if (auto done = restore(records, records.agents.size(), counts_.agents); !done) return done;
    }
  }

  Status jobs() {
    for (std::int64_t last = 0;;) {
      auto batch = from_.fleet().list_jobs({.before = last, .limit = kBatch});
      if (batch && batch->empty()) return {};
      if (batch) last = batch->back().id;
      if (auto done = restore(std::move(batch), &FleetRecords::jobs, counts_.jobs); !done)
        return done;
    }
  }

  Status events() {
    for (std::int64_t last = 0;;) {
      auto batch = from_.fleet().list_events({.after = last, .limit = kBatch});
      if (batch && batch->empty()) return {};
      if (batch) last = batch->back().id;
      if (auto done = restore(std::move(batch), &FleetRecords::events, counts_.events); !done)
        return done;
    }
  }

  Status files() {
    constexpr auto kAll = std::numeric_limits<std::size_t>::max();
    return restore(from_.fleet().list_files(kAll), &FleetRecords::files, counts_.files);
  }

  Status audit() {
    for (std::int64_t last = 0;;) {
      auto batch = from_.fleet().list_audit(last, kBatch);
      if (batch && batch->empty()) return {};
      if (batch) last = batch->back().id;
      if (auto done = restore(std::move(batch), &FleetRecords::audit, counts_.audit); !done)
        return done;
    }
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
