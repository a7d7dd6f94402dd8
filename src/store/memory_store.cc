#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "fleetfit/store/store.h"
#include "store/check.h"
#include "store/memory_fleet.h"
#include "store/memory_studies.h"

namespace fleetfit::store {
namespace {

template <class Record>
using ByName = std::map<std::string, Record, std::less<>>;

template <class Record>
std::optional<Record> find_in(const ByName<Record>& records, std::string_view name) {
  const auto found = records.find(name);
  if (found == records.end()) return std::nullopt;
  return found->second;
}

template <class Record>
std::vector<Record> list_of(const ByName<Record>& records) {
  std::vector<Record> list;
  for (const auto& [name, record] : records) list.push_back(record);
  return list;
}

template <class Record>
bool remove_from(ByName<Record>& records, std::string_view name) {
  const auto found = records.find(name);
  if (found == records.end()) return false;
  records.erase(found);
  return true;
}

template <class T>
bool fits(const std::optional<T>& wanted, const T& value) {
  return !wanted || *wanted == value;
}

bool fits(const MeasurementFilter& filter, const MeasurementRecord& measurement) {
  return fits(filter.device, measurement.device) &&
         fits(filter.device_fingerprint, measurement.device_fingerprint) &&
         fits(filter.model_hash, measurement.model_hash) &&
         (!filter.space || filter.space == measurement.space) &&
         fits(filter.status, measurement.status);
}

/// Without what stores do not keep.
MeasurementRecord kept(MeasurementRecord measurement) {
  if (auto& latency = measurement.latency) latency->session_ci95_ms = latency->mean_ci95_ms = {};
  if (measurement.energy) measurement.energy->meter.clear();
  measurement.kernel_choices.clear();
  return measurement;
}

bool newer(const MeasurementRecord* a, const MeasurementRecord* b) {
  return std::tie(a->started, a->id) > std::tie(b->started, b->id);
}

class MemoryStore final : public Store {
 public:
  Status save_device(const DeviceRecord& device) override {
    FLEETFIT_TRY(check(device));
    const std::scoped_lock lock(mutex_);
    devices_.insert_or_assign(device.name, device);
    return {};
  }
  Result<std::optional<DeviceRecord>> find_device(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return find_in(devices_, name);
  }
  Result<std::vector<DeviceRecord>> list_devices() override {
    const std::scoped_lock lock(mutex_);
    return list_of(devices_);
  }
  Result<bool> remove_device(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return remove_from(devices_, name);
  }

  Status save_model(const ModelRecord& model) override {
    FLEETFIT_TRY(check(model));
    const std::scoped_lock lock(mutex_);
    models_.insert_or_assign(model.hash, model);
    return {};
  }
  Result<std::optional<ModelRecord>> find_model(std::string_view hash) override {
    const std::scoped_lock lock(mutex_);
    return find_in(models_, hash);
  }
  Result<std::vector<ModelRecord>> list_models() override {
    const std::scoped_lock lock(mutex_);
    auto models = list_of(models_);
    std::ranges::stable_sort(models, {}, &ModelRecord::name);
    return models;
  }
  Result<bool> remove_model(std::string_view hash) override {
    const std::scoped_lock lock(mutex_);
    return remove_from(models_, hash);
  }

  Result<std::vector<std::int64_t>> add_measurements(
      std::span<const MeasurementRecord> measurements) override {
    for (const auto& measurement : measurements) FLEETFIT_TRY(check(measurement));
    const std::scoped_lock lock(mutex_);
    std::vector<std::int64_t> ids;
    for (const auto& measurement : measurements) {
      ids.push_back(++last_id_);
      measurements_.emplace(last_id_, kept(measurement)).first->second.id = last_id_;
    }
    return ids;
  }
  Result<std::optional<MeasurementRecord>> find_measurement(std::int64_t id) override {
    const std::scoped_lock lock(mutex_);
    const auto found = measurements_.find(id);
    if (found == measurements_.end()) return std::nullopt;
    return found->second;
  }
  Result<std::vector<MeasurementRecord>> list_measurements(
      const MeasurementFilter& filter) override {
    const std::scoped_lock lock(mutex_);
    std::vector<const MeasurementRecord*> fitting;
    for (const auto& [id, measurement] : measurements_)
      if (fits(filter, measurement)) fitting.push_back(&measurement);
    std::ranges::sort(fitting, newer);
    fitting.resize(std::min(fitting.size(), filter.limit.value_or(fitting.size())));

    std::vector<MeasurementRecord> list;
    for (const auto* measurement : fitting) {
      list.push_back(*measurement);
      if (!filter.operators) list.back().operators.clear();
    }
    return list;
  }
  Result<std::vector<MeasurementRecord>> list_measurements_after(std::int64_t id,
                                                                 std::size_t limit) override {
    const std::scoped_lock lock(mutex_);
    std::vector<MeasurementRecord> list;
    for (auto next = measurements_.upper_bound(id);
         next != measurements_.end() && list.size() < limit; ++next)
      list.push_back(next->second);
    return list;
  }
  Result<bool> remove_measurement(std::int64_t id) override {
    const std::scoped_lock lock(mutex_);
    return measurements_.erase(id) > 0;
  }

  Status save_kernel_choices(std::span<const KernelChoiceRecord> choices) override {
    for (const auto& choice : choices) FLEETFIT_TRY(check(choice));
    const std::scoped_lock lock(mutex_);
    for (const auto& choice : choices) choices_[choice.cpu].insert_or_assign(choice.key, choice);
    return {};
  }
  Result<std::vector<KernelChoiceRecord>> list_kernel_choices(std::string_view cpu) override {
    const std::scoped_lock lock(mutex_);
    const auto found = choices_.find(cpu);
    if (found == choices_.end()) return std::vector<KernelChoiceRecord>{};
    return list_of(found->second);
  }
  Result<std::vector<std::string>> list_kernel_cpus() override {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> cpus;
    for (const auto& [cpu, choices] : choices_) cpus.push_back(cpu);
    return cpus;
  }
  Result<std::int64_t> remove_kernel_choices(std::string_view cpu) override {
    const std::scoped_lock lock(mutex_);
    const auto found = choices_.find(cpu);
    if (found == choices_.end()) return 0;
    const auto count = static_cast<std::int64_t>(found->second.size());
    choices_.erase(found);
    return count;
  }

  StudyStore& studies() override { return *studies_; }
  FleetStore& fleet() override { return *fleet_; }

 private:
  std::mutex mutex_;
  ByName<DeviceRecord> devices_;
  ByName<ModelRecord> models_;  // by hash
  std::map<std::int64_t, MeasurementRecord> measurements_;
  std::int64_t last_id_ = 0;
  ByName<ByName<KernelChoiceRecord>> choices_;  // by CPU, then by key
  std::unique_ptr<StudyStore> studies_ = make_memory_studies();
  std::unique_ptr<FleetStore> fleet_ = make_memory_fleet();
};

}  // namespace

std::unique_ptr<Store> open_memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace fleetfit::store
