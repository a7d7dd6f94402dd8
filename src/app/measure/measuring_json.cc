#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "fleetfit/app/measuring.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

/// What stands under these keys.
template <class From>
void copy(const From& from, std::initializer_list<const char*> keys, Json& into) {
  for (const char* key : keys) into[key] = from.at(key);
}

Json comparison_json(const std::optional<measure::Comparison>& comparison) {
  if (!comparison || comparison->rounds == 0) return {};
  return {{"ratio", comparison->ratio},
          {"ci95", {comparison->ci95.low, comparison->ci95.high}},
          {"rounds", comparison->rounds}};
}

}  // namespace

Result<measure::Measurement> read_measured(const core::JsonView& measured) {
  FLEETFIT_ASSIGN(auto measurement, measure::measurement_from_json(measured));
  measurement.model_name = std::filesystem::path(measurement.model_name).stem().string();
  return measurement;
}

Json to_json(const MeasuredModel& measured) {
  const auto all = measure::to_json(measured.measurement);
  Json json{{"model", measured.model}};
  copy(all,
       {"hash", "device", "device_fingerprint", "status", "reason", "latency_ms", "runs",
        "overhead_ms", "peak_memory_bytes", "energy_mj"},
       json);
  json["energy_meter"] = measured.energy_meter;
  if (all.at("protocol").value("operators", false)) json["ops"] = all.value("ops", Json::array());
  if (measured.against_first) json["against_first"] = comparison_json(measured.against_first);
  copy(all,
       {"notes", "warmup_runs", "outliers", "drift", "bimodal", "unlike_before", "conditions",
        "protocol", "started"},
       json);
  return json;
}

Json to_json(const std::vector<MeasuredModel>& measured) {
  Json list = Json::array();
  for (const auto& one : measured) list.push_back(to_json(one));
  return list;
}

Json to_json(const MeasuredDesign& measured) {
  const auto all = core::to_json(measured.record);
  Json json;
  copy(all, {"model", "space"}, json);
  json["number"] = measured.number;
  copy(all, {"design", "hash", "device", "device_fingerprint"}, json);
  json["known"] = measured.known;
  copy(all,
       {"status", "reason", "latency_ms", "runs", "overhead_ms", "peak_memory_bytes", "energy_mj"},
       json);
  if (all.contains("ops")) json["ops"] = all.at("ops");
  return json;
}

Json to_json(const std::vector<MeasuredDesign>& measured) {
  Json list = Json::array();
  for (const auto& one : measured) list.push_back(to_json(one));
  return list;
}

Json to_json(const ExportSummary& summary) {
  return {{"output", summary.output}, {"rows", summary.rows}, {"devices", summary.devices}};
}

}  // namespace fleetfit::app
