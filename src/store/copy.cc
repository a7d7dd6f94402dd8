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
    FLEETFIT_TRY(check_empty());
    for (const auto step :
         {&Copy::devices, &Copy::models, &Copy::kernel_choices, &Copy::measurements, &Copy::studies,
          &Copy::inferences, &Copy::tokens, &Copy::agents, &Copy::jobs, &Copy::events, &Copy::files,
          &Copy::audit}) {
      FLEETFIT_TRY((this->*step)());
      note();
    }
    return counts_;
  }

 private:
  void note() const {
    if (on_batch_) on_batch_(counts_);
  }

  Status check_empty() {
    FLEETFIT_ASSIGN(const auto devices, to_.list_devices());
    FLEETFIT_ASSIGN(const auto models, to_.list_models());
    FLEETFIT_ASSIGN(const auto measurements, to_.list_measurements_after(0, 1));
    FLEETFIT_ASSIGN(const auto studies, to_.studies().list_studies());
    FLEETFIT_ASSIGN(const auto cpus, to_.list_kernel_cpus());
    FLEETFIT_ASSIGN(const auto has_fleet, is_fleet_there());
    if (devices.empty() && models.empty() && measurements.empty() && studies.empty() &&
        cpus.empty() && !has_fleet)
      return {};
    return fail(ErrorCode::invalid_input, "there is something in the store that is copied to");
  }

  Result<bool> is_fleet_there() {
    auto& fleet = to_.fleet();
    FLEETFIT_ASSIGN(const auto tokens, fleet.list_tokens());
    FLEETFIT_ASSIGN(const auto agents, fleet.list_agents({.limit = 1, .probes = false}));
    FLEETFIT_ASSIGN(const auto jobs, fleet.list_jobs({.limit = 1, .details = false}));
    FLEETFIT_ASSIGN(const auto event, fleet.newest_event());
    return !tokens.empty() || !agents.empty() || !jobs.empty() || event > 0;
  }

  Status devices() {
    FLEETFIT_ASSIGN(const auto list, from_.list_devices());
    for (const auto& device : list) FLEETFIT_TRY(to_.save_device(device));
    counts_.devices = static_cast<std::int64_t>(list.size());
    return {};
  }

  Status models() {
    FLEETFIT_ASSIGN(const auto list, from_.list_models());
    for (const auto& model : list) FLEETFIT_TRY(to_.save_model(model));
    counts_.models = static_cast<std::int64_t>(list.size());
    return {};
  }

  Status kernel_choices() {
    FLEETFIT_ASSIGN(const auto cpus, from_.list_kernel_cpus());
    for (const auto& cpu : cpus) {
      FLEETFIT_ASSIGN(const auto choices, from_.list_kernel_choices(cpu));
      FLEETFIT_TRY(to_.save_kernel_choices(choices));
      counts_.kernel_choices += static_cast<std::int64_t>(choices.size());
    }
    return {};
  }

  Status measurements() {
    for (std::int64_t last = 0;;) {
      FLEETFIT_ASSIGN(const auto batch, from_.list_measurements_after(last, kBatch));
      if (batch.empty()) return {};
      FLEETFIT_TRY(to_.add_measurements(batch));
      last = batch.back().id;
      counts_.measurements += static_cast<std::int64_t>(batch.size());
      note();
    }
  }

  Status studies() {
    FLEETFIT_ASSIGN(const auto list, from_.studies().list_studies());
    for (const auto& study : list) {
      FLEETFIT_TRY(to_.studies().create_study(study));
      FLEETFIT_TRY(trials(study.name));
      ++counts_.studies;
    }
    return {};
  }

  Status trials(const std::string& study) {
    for (std::int64_t next = 0;;) {
      FLEETFIT_ASSIGN(const auto batch,
                      from_.studies().list_trials(study, next, kBatch, LevelDetail::all));
      if (batch.empty()) return {};
      FLEETFIT_ASSIGN(const auto added, to_.studies().add_trials(study, batch));
      if (!added)
        return fail(ErrorCode::invalid_input,
                    "somebody else writes to the store that is copied to");
      next = batch.back().number + 1;
      counts_.trials += static_cast<std::int64_t>(batch.size());
      note();
    }
  }

  Status inferences() {
    FLEETFIT_ASSIGN(const auto list, from_.studies().list_inferences(""));
    for (const auto& inference : list) FLEETFIT_TRY(to_.studies().save_inference(inference));
    counts_.inferences = static_cast<std::int64_t>(list.size());
    return {};
  }

  // Adds a batch of one kind of the fleet's records.
  template <class Record, class Place>
  Status restore(Result<std::vector<Record>> batch, Place place, std::int64_t& count) {
    FLEETFIT_TRY(batch);
    FleetRecords records;
    records.*place = *std::move(batch);
    return restore(records, (records.*place).size(), count);
  }
  Status restore(const FleetRecords& records, std::size_t size, std::int64_t& count) {
    FLEETFIT_TRY(to_.fleet().restore(records));
    count += static_cast<std::int64_t>(size);
    note();
    return {};
  }

  Status tokens() {
    return restore(from_.fleet().list_tokens(), &FleetRecords::tokens, counts_.tokens);
  }

  Status agents() {
    for (std::string last;;) {
      FLEETFIT_ASSIGN(auto batch, from_.fleet().list_agents({.after = last, .limit = kBatch}));
      if (batch.empty()) return {};
      last = batch.back().name;
      FleetRecords records{.agents = std::move(batch)};
      for (const auto& agent : records.agents) {
        FLEETFIT_ASSIGN(const auto sequence, from_.fleet().last_sequence(agent.name));
        if (sequence > 0) records.sequences.emplace(agent.name, sequence);
      }
      FLEETFIT_TRY(restore(records, records.agents.size(), counts_.agents));
    }
  }

  Status jobs() {
    for (std::int64_t last = 0;;) {
      auto batch = from_.fleet().list_jobs({.before = last, .limit = kBatch});
      if (batch && batch->empty()) return {};
      if (batch) last = batch->back().id;
      FLEETFIT_TRY(restore(std::move(batch), &FleetRecords::jobs, counts_.jobs));
    }
  }

  Status events() {
    for (std::int64_t last = 0;;) {
      auto batch = from_.fleet().list_events({.after = last, .limit = kBatch});
      if (batch && batch->empty()) return {};
      if (batch) last = batch->back().id;
      FLEETFIT_TRY(restore(std::move(batch), &FleetRecords::events, counts_.events));
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
      FLEETFIT_TRY(restore(std::move(batch), &FleetRecords::audit, counts_.audit));
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
