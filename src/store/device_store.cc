#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

#include "fleetfit/store/store.h"
#include "store/check.h"

namespace fleetfit::store {
namespace {

/// Records by their keys.
template <class Key, class Record>
class RecordMap {
 public:
  void save(const Key& key, const Record& record) { records_.insert_or_assign(key, record); }
  template <class Name>
  std::optional<Record> find(const Name& key) const {
    const auto found = records_.find(key);
    return found == records_.end() ? std::nullopt : std::optional(found->second);
  }
  template <class Fits>
  std::vector<Record> list(const Fits& fits) const {
    std::vector<Record> list;
    for (const auto& [key, record] : records_)
      if (fits(record)) list.push_back(record);
    return list;
  }
  std::vector<Record> list() const {
    return list([](const Record&) { return true; });
  }
  // How many there were.
  template <class Fits>
  std::int64_t remove(const Fits& fits) {
    return static_cast<std::int64_t>(
        std::erase_if(records_, [&](const auto& one) { return fits(one.second); }));
  }

 private:
  std::map<Key, Record, std::less<>> records_;
};

bool fits(const MeasurementFilter& filter, const MeasurementRecord& measurement) {
  const auto is_wanted = [](const auto& wanted, const auto& value) {
    return !wanted || wanted == value;
  };
  return is_wanted(filter.device, measurement.device) &&
         is_wanted(filter.device_fingerprint, measurement.device_fingerprint) &&
         is_wanted(filter.model_hash, measurement.model_hash) &&
         is_wanted(filter.space, measurement.space) && is_wanted(filter.status, measurement.status);
}

/// Without what stores do not keep.
MeasurementRecord kept(MeasurementRecord measurement) {
  if (auto& latency = measurement.latency) latency->session_ci95_ms = latency->mean_ci95_ms = {};
  if (measurement.energy) measurement.energy->meter.clear();
  measurement.kernel_choices.clear();
  return measurement;
}

class DeviceStore final : public Store {
 public:
  Status save_device(const DeviceRecord& device) override {
    FLEETFIT_TRY(check(device));
    const std::scoped_lock lock(mutex_);
    devices_.save(device.name, device);
    return {};
  }
  Result<std::optional<DeviceRecord>> find_device(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return devices_.find(name);
  }
  Result<std::vector<DeviceRecord>> list_devices() override {
    const std::scoped_lock lock(mutex_);
    return devices_.list();
  }
  Result<bool> remove_device(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return devices_.remove([&](const DeviceRecord& device) { return device.name == name; }) > 0;
  }

  Status save_model(const ModelRecord& model) override {
    FLEETFIT_TRY(check(model));
    const std::scoped_lock lock(mutex_);
    models_.save(model.hash, model);
    return {};
  }
  Result<std::optional<ModelRecord>> find_model(std::string_view hash) override {
    const std::scoped_lock lock(mutex_);
    return models_.find(hash);
  }
  Result<std::vector<ModelRecord>> list_models() override {
    const std::scoped_lock lock(mutex_);
    auto models = models_.list();
    std::ranges::stable_sort(models, {}, &ModelRecord::name);
    return models;
  }
  Result<bool> remove_model(std::string_view hash) override {
    const std::scoped_lock lock(mutex_);
    return models_.remove([&](const ModelRecord& model) { return model.hash == hash; }) > 0;
  }

  Result<std::vector<std::int64_t>> add_measurements(
      std::span<const MeasurementRecord> measurements) override {
    FLEETFIT_TRY(check_each(measurements));
    const std::scoped_lock lock(mutex_);
    std::vector<std::int64_t> ids;
    for (const auto& one : measurements) {
      auto measurement = kept(one);
      measurement.id = ++last_id_;
      measurements_.save(last_id_, measurement);
      ids.push_back(last_id_);
    }
    return ids;
  }
  Result<std::optional<MeasurementRecord>> find_measurement(std::int64_t id) override {
    const std::scoped_lock lock(mutex_);
    return measurements_.find(id);
  }
  Result<std::vector<MeasurementRecord>> list_measurements(
      const MeasurementFilter& filter) override {
    const std::scoped_lock lock(mutex_);
    auto list = measurements_.list([&](const auto& one) { return fits(filter, one); });
    std::ranges::sort(list, std::ranges::greater(),
                      [](const auto& one) { return std::tuple(one.started, one.id); });
    list.resize(std::min(list.size(), filter.limit.value_or(list.size())));
    if (!filter.operators)
      for (auto& measurement : list) measurement.operators.clear();
    return list;
  }
  Result<std::vector<MeasurementRecord>> list_measurements_after(std::int64_t id,
                                                                 std::size_t limit) override {
    const std::scoped_lock lock(mutex_);
    auto list = measurements_.list([&](const auto& one) { return one.id > id; });
    list.resize(std::min(list.size(), limit));
    return list;
  }
  Result<bool> remove_measurement(std::int64_t id) override {
    const std::scoped_lock lock(mutex_);
    return measurements_.remove([&](const auto& one) { return one.id == id; }) > 0;
  }

  Status save_kernel_choices(std::span<const KernelChoiceRecord> choices) override {
    FLEETFIT_TRY(check_each(choices));
    const std::scoped_lock lock(mutex_);
    for (const auto& choice : choices) choices_.save({choice.cpu, choice.key}, choice);
    return {};
  }
  Result<std::vector<KernelChoiceRecord>> list_kernel_choices(std::string_view cpu) override {
    const std::scoped_lock lock(mutex_);
    return choices_.list([&](const auto& choice) { return choice.cpu == cpu; });
  }
  Result<std::vector<std::string>> list_kernel_cpus() override {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> cpus;
    for (const auto& choice : choices_.list())
      if (cpus.empty() || cpus.back() != choice.cpu) cpus.push_back(choice.cpu);
    return cpus;
  }
  Result<std::int64_t> remove_kernel_choices(std::string_view cpu) override {
    const std::scoped_lock lock(mutex_);
    return choices_.remove([&](const auto& choice) { return choice.cpu == cpu; });
  }

  // No job of a device asks for these.
  StudyStore& studies() override { std::abort(); }
  FleetStore& fleet() override { std::abort(); }

 private:
  std::mutex mutex_;
  RecordMap<std::string, DeviceRecord> devices_;
  RecordMap<std::string, ModelRecord> models_;  // by hash
  RecordMap<std::int64_t, MeasurementRecord> measurements_;
  std::int64_t last_id_ = 0;
  RecordMap<std::pair<std::string, std::string>, KernelChoiceRecord> choices_;  // by CPU and key
};

}  // namespace

std::unique_ptr<Store> open_device_store() { return std::make_unique<DeviceStore>(); }

}  // namespace fleetfit::store
