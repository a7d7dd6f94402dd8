#include "fleetfit/app/device_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/json.h"
#include "fleetfit/learned/device_features.h"
#include "fleetfit/space/table.h"

namespace fleetfit::app {
namespace {

using learned::DeviceFeatures;

Result<std::vector<std::size_t>> reference_rows(const ReferenceRequest& request,
                                                const space::DesignTable& table,
                                                std::uint64_t seed) {
  if (!request.rows.empty() && !request.designs.empty()) {
    return fail(ErrorCode::invalid_input,
                "reference designs are given by their rows or by their texts, not by both");
  }
  if (!request.rows.empty()) return request.rows;
  if (!request.designs.empty()) return learned::find_references(table, request.designs);
  return learned::choose_references(table, {.count = request.count, .seed = seed});
}

Result<DeviceFeatures> read_references(const ReferenceRequest& request, std::uint64_t seed) {
  FLEETFIT_ASSIGN(const auto space, space::find_space(request.space));
  FLEETFIT_ASSIGN(const auto table,
                  space::read_design_table(request.table, *space, {.columns = request.devices}));
  FLEETFIT_ASSIGN(const auto rows, reference_rows(request, table, seed));
  return learned::reference_features(table, rows);
}

Result<DeviceFeatures> read_probe(const ProbeFile& probe) {
  FLEETFIT_ASSIGN(const auto json, core::read_json(probe.file));
  return learned::probe_features(probe.device, core::JsonView(json, probe.file.string()));
}

double value_of(const DeviceFeatures& features, std::size_t device,
                const learned::FeatureColumn& column) {
  const auto found = std::ranges::find(features.columns, column);
  if (found == features.columns.end()) return std::nan("");
  return features.row(device)[static_cast<std::size_t>(found - features.columns.begin())];
}

/// Several devices with the same kind of features, one below the other.
DeviceFeatures stack_devices(const std::vector<DeviceFeatures>& parts) {
  DeviceFeatures all{.name = "the probes"};
  for (const auto& part : parts) {
    for (const auto& column : part.columns)
      if (!std::ranges::count(all.columns, column)) all.columns.push_back(column);
  }
  for (const auto& part : parts) {
    all.devices.push_back(part.devices.front());
    for (const auto& column : all.columns) all.values.push_back(value_of(part, 0, column));
  }
  return all;
}

Result<DeviceFeatures> read_probes(const std::vector<ProbeFile>& probes) {
  std::vector<DeviceFeatures> parts;
  for (const auto& probe : probes) {
    if (std::ranges::count(probes, probe.device, &ProbeFile::device) > 1) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("there are two probes of the device '{}'", probe.device));
    }
    FLEETFIT_ASSIGN(auto features, read_probe(probe));
    parts.push_back(std::move(features));
  }
  return stack_devices(parts);
}

Result<learned::SheetFeatures> read_sheet(const SheetRequest& request) {
  FLEETFIT_ASSIGN(const auto csv, core::read_csv(request.file));
  return learned::sheet_features(csv, request.file.string(), request.device_column);
}

Status add(Result<DeviceFeatures> more, DeviceFeatures& all) {
  FLEETFIT_TRY(more);
  if (all.columns.empty()) {
    all = *std::move(more);
    return {};
  }
  FLEETFIT_ASSIGN(all, learned::join_features(all, *more));
  return {};
}

}  // namespace

Result<MadeFeatures> make_device_features(const FeaturesRequest& request) {
  MadeFeatures made;
  std::vector<Result<DeviceFeatures>> parts;
  for (const auto& file : request.files) parts.push_back(learned::read_device_features(file));
  if (request.references) parts.push_back(read_references(*request.references, request.seed));
  if (!request.probes.empty()) parts.push_back(read_probes(request.probes));
  if (request.sheet) {
    auto sheet = read_sheet(*request.sheet);
    if (sheet) made.left_out = std::move(sheet->left_out);
    parts.push_back(std::move(sheet).map([](auto&& read) { return std::move(read.features); }));
  }
  if (parts.empty())
    return fail(ErrorCode::invalid_input, "name a table, a probe, a sheet or a file of features");
  for (auto& part : parts) {
    FLEETFIT_TRY(add(std::move(part), made.features));
  }
  return made;
}

Status write_features(const MadeFeatures& made, const std::filesystem::path& path) {
  return learned::write_device_features(path, made.features);
}

nlohmann::ordered_json to_json(const MadeFeatures& made) {
  auto columns = nlohmann::ordered_json::array();
  for (const auto& column : made.features.columns) columns.push_back(column.text());
  const auto missing =
      std::ranges::count_if(made.features.values, [](double value) { return std::isnan(value); });
  return {{"devices", made.features.devices},
          {"columns", std::move(columns)},
          {"missing", missing},
          {"left_out", made.left_out}};
}

}  // namespace fleetfit::app
