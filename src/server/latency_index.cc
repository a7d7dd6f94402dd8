#include "server/latency_index.h"

#include <algorithm>
#include <tuple>

namespace fleetfit::server {
namespace {

constexpr std::size_t kAtOnce = 5'000;

}  // namespace

Status LatencyIndex::refresh() {
  const std::lock_guard refreshing(refreshing_);
  for (;;) {
    std::int64_t after = 0;
    {
      const std::lock_guard lock(mutex_);
      after = last_id_;
    }
    FLEETFIT_ASSIGN(const auto page, store_.list_measurements_after(after, kAtOnce));
    const std::lock_guard lock(mutex_);
    for (const auto& record : page) add(record);
    if (page.size() < kAtOnce) return {};
  }
}

LatencyIndex::Number LatencyIndex::model_number(const store::MeasurementRecord& record) {
  const auto [at, added] =
      model_numbers_.try_emplace(record.model_hash, static_cast<Number>(models_.size()));
  if (added)
    models_.push_back(
        {.hash = record.model_hash, .name = record.model_name, .space = record.space.value_or("")});
  return at->second;
}

LatencyIndex::Number LatencyIndex::device_number(const store::MeasurementRecord& record) {
  const auto [at, added] =
      device_numbers_.try_emplace(record.device, static_cast<Number>(devices_.size()));
  if (added) {
    devices_.push_back({.name = record.device});
    cells_.emplace_back();
  }
  return at->second;
}

void LatencyIndex::add(const store::MeasurementRecord& record) {
  last_id_ = std::max(last_id_, record.id);
  ++count_;
  const auto model = model_number(record);
  const auto device = device_number(record);
  const auto [at, added] = cells_[device].try_emplace(model);
  if (added) {
    ++models_[model].devices;
    ++devices_[device].models;
  }
  auto& cell = at->second;
  if (!added && std::tuple(record.started, record.id) < std::tuple(cell.started, cell.id)) return;
  devices_[device].fingerprint = record.device_fingerprint;
  cell = {.id = record.id, .status = record.status, .started = record.started};
  if (!record.latency) return;
  cell.median_ms = record.latency->median_ms;
  cell.low_ms = record.latency->ci95_ms.low;
  cell.high_ms = record.latency->ci95_ms.high;
}

std::int64_t LatencyIndex::measurements() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

std::vector<LatencyIndex::Model> LatencyIndex::models() const {
  std::vector<Model> all;
  {
    const std::lock_guard lock(mutex_);
    all = models_;
  }
  std::ranges::sort(all, {}, [](const Model& m) { return std::tie(m.name, m.hash); });
  return all;
}

std::vector<LatencyIndex::Device> LatencyIndex::devices() const {
  std::vector<Device> all;
  const std::lock_guard lock(mutex_);
  all.reserve(devices_.size());
  for (const auto& [name, number] : device_numbers_) all.push_back(devices_[number]);
  return all;
}

std::vector<LatencyIndex::Device> LatencyIndex::settings_of(std::string_view name) const {
  std::vector<Device> found;
  const auto prefix = std::string(name) + ".";
  const std::lock_guard lock(mutex_);
  if (const auto at = device_numbers_.find(name); at != device_numbers_.end())
    found.push_back(devices_[at->second]);
  for (auto at = device_numbers_.lower_bound(prefix);
       at != device_numbers_.end() && at->first.starts_with(prefix); ++at)
    found.push_back(devices_[at->second]);
  return found;
}

std::optional<LatencyIndex::Cell> LatencyIndex::find(std::string_view model,
                                                     std::string_view device) const {
  const std::lock_guard lock(mutex_);
  const auto row = model_numbers_.find(model);
  const auto column = device_numbers_.find(device);
  if (row == model_numbers_.end() || column == device_numbers_.end()) return std::nullopt;
  const auto& cells = cells_[column->second];
  const auto at = cells.find(row->second);
  if (at == cells.end()) return std::nullopt;
  return at->second;
}

std::vector<LatencyIndex::Column> LatencyIndex::columns(std::span<const std::string> devices,
                                                        std::string_view space) const {
  std::vector<Column> all;
  const std::lock_guard lock(mutex_);
  for (const auto& name : devices) {
    Column column{.device = name};
    const auto at = device_numbers_.find(name);
    if (at != device_numbers_.end()) {
      for (const auto& [model, cell] : cells_[at->second]) {
        const bool good = cell.median_ms && cell.status != store::MeasurementStatus::failed;
        if (good && (space.empty() || models_[model].space == space))
          column.ms.emplace(model, *cell.median_ms);
      }
    }
    all.push_back(std::move(column));
  }
  return all;
}

}  // namespace fleetfit::server
