#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "fleetfit/app/measuring.h"
#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/space/space.h"

namespace fleetfit::app {
namespace {

using store::MeasurementRecord;

struct ModelKey {
  std::string name;
  std::string hash;
  auto operator<=>(const ModelKey&) const = default;
};

enum class Choice { newest, fastest };

/// One of each model on each device; of a device name only what its newest device measured.
class ChosenMeasurements {
 public:
  using Wanted = bool (*)(const MeasurementRecord&);

  /// `records` newest first.
  ChosenMeasurements(const std::vector<MeasurementRecord>& records, Choice choice, Wanted wanted) {
    std::map<std::string, std::string> fingerprints;
    std::map<std::string, std::string> names;
    for (const auto& record : records) {
      const auto [newest, is_new] = fingerprints.emplace(record.device, record.device_fingerprint);
      if (newest->second != record.device_fingerprint || !wanted(record)) continue;
      // A model that was renamed is one model, with its newest name.
      const auto& name = names.emplace(record.model_hash, record.model_name).first->second;
      devices_.insert(record.device);
      auto& chosen = rows_[{name, record.model_hash}].emplace(record.device, &record).first->second;
      if (choice == Choice::fastest && record.latency->median_ms < chosen->latency->median_ms)
        chosen = &record;
    }
  }

  const std::map<ModelKey, std::map<std::string, const MeasurementRecord*>>& rows() const {
    return rows_;
  }
  std::vector<std::string> devices() const { return {devices_.begin(), devices_.end()}; }

 private:
  std::map<ModelKey, std::map<std::string, const MeasurementRecord*>> rows_;
  std::set<std::string> devices_;
};

Result<std::vector<MeasurementRecord>> good_measurements(Workplace& workplace,
                                                         store::MeasurementFilter filter) {
  filter.status = store::MeasurementStatus::ok;
  auto records = workplace.store->list_measurements(filter);
  if (records && records->empty()) {
    return fail(ErrorCode::not_found, "the store holds no good measurement to export");
  }
  return records;
}

std::vector<std::string> with_devices(std::vector<std::string> keys,
                                      const std::vector<std::string>& devices) {
  keys.insert(keys.end(), devices.begin(), devices.end());
  return keys;
}

std::vector<core::CsvCell> with_medians(
    std::vector<core::CsvCell> keys, const std::vector<std::string>& devices,
    const std::map<std::string, const MeasurementRecord*>& by_device) {
  for (const auto& device : devices) {
    const auto found = by_device.find(device);
    keys.push_back(found == by_device.end() ? core::CsvCell()
                                            : core::CsvCell(found->second->latency->median_ms));
  }
  return keys;
}

}  // namespace

Result<ExportSummary> export_measurements(Workplace& workplace, const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto records, good_measurements(workplace, {.operators = false}));
  const ChosenMeasurements chosen(records, Choice::newest,
                                  [](const MeasurementRecord&) { return true; });
  core::CsvWriter table(with_devices({"model", "hash"}, chosen.devices()));
  for (const auto& [model, by_device] : chosen.rows())
    table.add_row(with_medians({model.name, model.hash}, chosen.devices(), by_device));
  FLEETFIT_TRY(core::write_file(file, table.text()));
  return ExportSummary{
      .output = file.string(), .rows = chosen.rows().size(), .devices = chosen.devices()};
}

Result<ExportSummary> export_designs(Workplace& workplace, std::string_view space,
                                     const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto known, space::find_space(space));
  FLEETFIT_ASSIGN(const auto records, workplace.store->list_measurements(
                                          {.space = std::string(space), .operators = false}));
  // Unstable ones count as measured; of several sessions the fastest does, as everywhere.
  const ChosenMeasurements chosen(records, Choice::fastest, [](const MeasurementRecord& record) {
    return record.latency.has_value();
  });
  if (chosen.rows().empty()) {
    return fail(ErrorCode::not_found,
                fmt::format("the store holds no measurement of the space {} to export", space));
  }
  core::CsvWriter table(with_devices(known->columns(), chosen.devices()));
  ExportSummary summary{.output = file.string(), .devices = chosen.devices()};
  for (const auto& [model, by_device] : chosen.rows()) {
    // A text that an older version of the space wrote may mean nothing any more.
    const auto design = known->parse(by_device.begin()->second->design.value_or(""));
    if (!design) continue;
    const auto cells = known->cells(*design);
    table.add_row(with_medians({cells.begin(), cells.end()}, chosen.devices(), by_device));
    ++summary.rows;
  }
  FLEETFIT_TRY(core::write_file(file, table.text()));
  return summary;
}

Result<ExportSummary> export_operators(Workplace& workplace, const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto records, good_measurements(workplace, {}));
  const ChosenMeasurements chosen(records, Choice::newest, [](const MeasurementRecord& record) {
    return !record.operators.empty();
  });
  const std::vector<std::string> header = {"model",    "hash", "device", "position",
                                           "operator", "type", "kernel", "ms"};
  core::CsvWriter table(header);
  ExportSummary summary{.output = file.string(), .devices = chosen.devices()};
  for (const auto& [model, by_device] : chosen.rows()) {
    for (const auto& [device, record] : by_device) {
      for (std::size_t i = 0; i < record->operators.size(); ++i) {
        const auto& op = record->operators[i];
        table.add_row({model.name, model.hash, device, i, op.name, op.type, op.kernel, op.ms});
        ++summary.rows;
      }
    }
  }
  if (summary.rows == 0) {
    return fail(
        ErrorCode::not_found,
        "the store holds no measurement with operators; 'fleetfit measure --ops' makes one");
  }
  FLEETFIT_TRY(core::write_file(file, table.text()));
  return summary;
}

}  // namespace fleetfit::app
