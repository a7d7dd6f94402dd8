#include <nlohmann/json.hpp>

#include "fleetfit/app/measuring.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

Json comparison_json(const std::optional<measure::Comparison>& comparison) {
  if (!comparison || comparison->rounds == 0) return {};
  return {{"ratio", comparison->ratio},
          {"ci95", {comparison->ci95.low, comparison->ci95.high}},
          {"rounds", comparison->rounds}};
}

Json operators_json(const std::vector<store::OperatorRecord>& operators) {
  Json list = Json::array();
  for (const auto& op : operators) {
    list.push_back(
        {{"name", op.name}, {"type", op.type}, {"kernel", op.kernel}, {"latency_ms", op.ms}});
  }
  return list;
}

}  // namespace

Json latency_json(const std::optional<store::Latency>& latency) {
  if (!latency) return {};
  return {{"median", latency->median_ms},
          {"mean", latency->mean_ms},
          {"p90", latency->p90_ms},
          {"p99", latency->p99_ms},
          {"ci95", {latency->ci95_low_ms, latency->ci95_high_ms}}};
}

Json energy_json(const std::optional<store::Energy>& energy) {
  if (!energy) return {};
  return {{"value", energy->mj}, {"source", store::to_string(energy->source)}};
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
            {"overhead_ms", r.overhead_ms ? Json(*r.overhead_ms) : Json()},
            {"peak_memory_bytes", r.peak_memory_bytes ? Json(*r.peak_memory_bytes) : Json()},
            {"energy_mj", energy_json(r.energy)}};
  if (!r.operators.empty()) json["ops"] = operators_json(r.operators);
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
