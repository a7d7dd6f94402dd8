#include <algorithm>
#include <map>
#include <set>

#include "fleetfit/app/measuring.h"
#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"

namespace fleetfit::app {
namespace {

using store::MeasurementRecord;

struct ModelKey {
  std::string name;
  std::string hash;
  auto operator<=>(const ModelKey&) const = default;
};

/// The newest of each model on each device; of a device name only what its newest device measured.
class NewestMeasurements {
 public:
  using Wanted = bool (*)(const MeasurementRecord&);

  /// `records` newest first.
  NewestMeasurements(const std::vector<MeasurementRecord>& records, Wanted wanted) {
    std::map<std::string, std::string> fingerprints;
    std::map<std::string, std::string> names;
    for (const auto& record : records) {
      const auto [newest, is_new] = fingerprints.emplace(record.device, record.device_fingerprint);
      if (newest->second != record.device_fingerprint || !wanted(record)) continue;
      // A model that was renamed is one model, with its newest name.
      const auto& name = names.emplace(record.model_hash, record.model_name).first->second;
      devices_.insert(record.device);
      rows_[{name, record.model_hash}].emplace(record.device, &record);
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

}  // namespace

Result<ExportSummary> export_measurements(Workplace& workplace, const std::filesystem::path& file) {
  const auto records = good_measurements(workplace, {.operators = false});
  if (!records) return tl::unexpected(records.error());
  const NewestMeasurements newest(*records, [](const MeasurementRecord&) { return true; });
  const auto devices = newest.devices();
  std::vector<std::string> header = {"model", "hash"};
  header.insert(header.end(), devices.begin(), devices.end());
  core::CsvWriter table(header);
  for (const auto& [model, by_device] : newest.rows()) {
    std::vector<core::CsvCell> cells = {model.name, model.hash};
    for (const auto& device : devices) {
      const auto found = by_device.find(device);
      cells.push_back(found == by_device.end() ? core::CsvCell()
                                               : core::CsvCell(found->second->latency->median_ms));
    }
    table.add_row(cells);
  }
  if (auto ok = core::write_file(file, table.text()); !ok) return tl::unexpected(ok.error());
  return ExportSummary{.output = file.string(), .rows = newest.rows().size(), .devices = devices};
}

Result<ExportSummary> export_operators(Workplace& workplace, const std::filesystem::path& file) {
  const auto records = good_measurements(workplace, {});
  if (!records) return tl::unexpected(records.error());
  const NewestMeasurements newest(
      *records, [](const MeasurementRecord& record) { return !record.operators.empty(); });
  const std::vector<std::string> header = {"model",    "hash", "device", "position",
                                           "operator", "type", "kernel", "ms"};
  core::CsvWriter table(header);
  ExportSummary summary{.output = file.string(), .devices = newest.devices()};
  for (const auto& [model, by_device] : newest.rows()) {
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
  if (auto ok = core::write_file(file, table.text()); !ok) return tl::unexpected(ok.error());
  return summary;
}

}  // namespace fleetfit::app
