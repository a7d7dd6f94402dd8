#include <nlohmann/json.hpp>

#include "fleetfit/app/measuring.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

Json comparison_json(const std::optional<measure::Comparison>& comparison) {
  if (!comparison || comparison->rounds == 0) return {};
  return {{"ratio", comparison->ratio},
          {"ci95", {comparison->ci95.low, comparison->ci95.high}},
          {"rounds", comparison->rounds}};
}

}  // namespace

Json latency_json(const std::optional<store::Latency>& latency) {
  if (!latency) return {};
  auto json = core::to_json(*latency);
  json.erase("session_ci95");
  json.erase("mean_ci95");
  return json;
}

Json energy_json(const std::optional<store::Energy>& energy) {
  if (!energy) return {};
  auto json = core::to_json(*energy);
  json.erase("meter");
  return json;
}

Json to_json(const MeasuredModel& measured) {
  const auto& m = measured.measurement;
  const nlohmann::json all = measure::to_json(m);
  Json json{{"model", measured.model},
            {"hash", measured.hash},
            {"device", measured.device},
            {"device_fingerprint", measured.device_fingerprint}};
  for (const char* key : {"status", "reason", "latency_ms", "runs", "overhead_ms"})
    json[key] = all.at(key);
  json["peak_memory_bytes"] = m.peak_memory_bytes > 0 ? Json(m.peak_memory_bytes) : Json();
  json["energy_mj"] = all.at("energy_mj");
  json["energy_meter"] = measured.energy_meter;
  if (m.protocol.operators) json["ops"] = all.at("ops");
  if (measured.against_first) json["against_first"] = comparison_json(measured.against_first);
  for (const char* key : {"notes", "warmup_runs", "outliers", "drift", "bimodal", "unlike_before",
                          "conditions", "protocol", "started"})
    json[key] = all.at(key);
  return json;
}

Json to_json(const std::vector<MeasuredModel>& measured) {
  Json list = Json::array();
  for (const auto& one : measured) list.push_back(to_json(one));
  return list;
}

Json to_json(const MeasuredDesign& measured) {
  const auto& r = measured.record;
  Json json{{"model", r.model_name},
            {"space", r.space.value_or("")},
            {"number", measured.number},
            {"design", r.design.value_or("")},
            {"hash", r.model_hash},
            {"device", r.device},
            {"device_fingerprint", r.device_fingerprint},
            {"known", measured.known},
            {"status", store::to_string(r.status)},
            {"reason", r.reason},
            {"latency_ms", latency_json(r.latency)},
            {"runs", r.runs},
            {"overhead_ms", core::or_null(r.overhead_ms)},
            {"peak_memory_bytes", core::or_null(r.peak_memory_bytes)},
            {"energy_mj", energy_json(r.energy)}};
  if (!r.operators.empty()) json["ops"] = core::to_json(r.operators);
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
