#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::app {
namespace {

nlohmann::ordered_json best_json(const tune::InferenceResult& result) {
  if (!result.best) return nullptr;
  const auto& best = result.trials[*result.best];
  const auto& cost = *best.cost;
  nlohmann::ordered_json json = {{"params", tune::to_json(best.setting)},
                                 {"latency_ms", cost.cost.latency_ms},
                                 {"spread_ms", cost.spread_ms},
                                 {"source", cost.predicted ? "predicted" : "measured"},
                                 {"throughput", best.response.throughput},
                                 {"capacity", best.response.capacity()},
                                 {"response", core::to_json(best.response)}};
  if (best.response.energy_mj)
    json["energy_mj"] = {{"value", *best.response.energy_mj}, {"source", cost.energy_source}};
  if (!cost.note.empty()) json["note"] = cost.note;
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const DeviceInference& inference) {
  const auto result = tune::to_json(inference.result);
  return {{"device", inference.device},
          {"fingerprint", inference.fingerprint},
          {"structure", inference.structure},
          {"known", inference.known},
          {"best", best_json(inference.result)},
          {"priced", inference.result.trials.size()},
          {"settings", inference.result.settings},
          {"elapsed_s", inference.result.elapsed_s},
          {"trials", result.at("trials")}};
}

nlohmann::ordered_json to_json(const ConfirmedInference& confirmed) {
  nlohmann::ordered_json json = {{"device", confirmed.device},
                                 {"scenario", tune::describe(confirmed.scenario)},
                                 {"params", tune::to_json(confirmed.setting)},
                                 {"expected", core::to_json(confirmed.expected)},
                                 {"real", core::to_json(confirmed.real)},
                                 {"error", confirmed.error()},
                                 {"batches_loaded", confirmed.batches}};
  if (!confirmed.energy_source.empty()) json["energy_source"] = confirmed.energy_source;
  json["notes"] = confirmed.notes;
  return json;
}

}  // namespace fleetfit::app
