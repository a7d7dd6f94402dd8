#include <nlohmann/json.hpp>

#include "fleetfit/app/transferring.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

Json interval_json(const core::Interval& interval) {
  return Json::array({interval.low, interval.high});
}

Json estimate_json(const transfer::SrccEstimate& estimate) {
  return {{"srcc", estimate.srcc}, {"ci95", interval_json(estimate.ci95)}};
}

Json optional_json(const auto& value) { return value ? Json(*value) : Json(nullptr); }

Json peaks_json(const DevicePeaks& device) {
  return {{"device", device.device},
          {"gflops", device.peaks.gflops},
          {"gbytes_per_second", device.peaks.gbytes_per_second},
          {"ridge", device.peaks.ridge()}};
}

Json roofline_json(const RooflinePair& pair) {
  const auto& comparison = pair.comparison;
  return {{"devices", Json::array({peaks_json(pair.a), peaks_json(pair.b)})},
          {"compute_bound", {comparison.compute_bound_a, comparison.compute_bound_b}},
          {"memory_bound", {1 - comparison.compute_bound_a, 1 - comparison.compute_bound_b}},
          {"same_bound", comparison.same_bound},
          {"intensity", {comparison.intensity_low, comparison.intensity_high}},
          {"srcc_by_peaks", comparison.srcc},
          {"srcc", optional_json(pair.srcc)},
          {"explanation", transfer::explain(comparison)}};
}

Json changes_json(const std::vector<transfer::OperatorChange>& changes) {
  auto json = Json::array();
  for (const auto& change : changes) {
    json.push_back(
        {{"name", change.name}, {"change_ms", change.change_ms}, {"live_only", change.live_only}});
  }
  return json;
}

Json trial_json(const AdaptTrial& trial) {
  return {{"seed", trial.seed},
          {"srcc_after", trial.srcc_after},
          {"held_out_srcc", trial.report.held_out_srcc},
          {"alpha", trial.alpha},
          {"lambda", trial.report.lambda},
          {"kept_proxy", trial.report.keeps_proxy}};
}

Json step_json(const transfer::OneProxyStep& step) {
  Json json{{"samples", step.samples}, {"proxy", estimate_json(step.proxy)}};
  json["adapted"] = step.adapted ? estimate_json(*step.adapted) : Json(nullptr);
  return json;
}

}  // namespace

Json to_json(const CorrelationReport& report) {
  Json json{{"devices", report.matrix.devices},
            {"srcc", report.matrix.srcc},
            {"designs", report.matrix.designs},
            {"empty_cells", report.empty_cells}};
  if (report.rooflines.empty()) return json;
  auto rooflines = Json::array();
  for (const auto& pair : report.rooflines) rooflines.push_back(roofline_json(pair));
  json["rooflines"] = std::move(rooflines);
  return json;
}

Json to_json(const EstimateReport& report) {
  return {{"mean", report.spread.mean},
          {"std", report.spread.stddev},
          {"ci95", interval_json(report.spread.ci95)},
          {"samples", report.options.samples},
          {"trials", report.options.trials},
          {"trials_without_order", report.spread.undefined},
          {"srcc", report.srcc},
          {"designs", report.designs},
          {"threshold", report.threshold},
          {"enough_samples", optional_json(report.enough)}};
}

Json to_json(const SelectReport& report) {
  auto ranking = Json::array();
  for (const auto& proxy : report.ranking)
    ranking.push_back({{"device", proxy.device}, {"mean_srcc", proxy.mean_srcc}});
  auto pool = Json::array();
  for (const auto& member : report.pool)
    pool.push_back({{"proxy", member.proxy}, {"devices", member.devices}});
  return {{"proxy", report.ranking.front().device},
          {"ranking", std::move(ranking)},
          {"designs", report.designs},
          {"threshold", report.threshold},
          {"pool", std::move(pool)}};
}

Json to_json(const AdaptProxyReport& report) {
  auto trials = Json::array();
  for (const auto& trial : report.trials) trials.push_back(trial_json(trial));
  return {{"srcc_before", report.srcc_before},
          {"srcc_after", report.srcc_after},
          {"alpha", report.alpha},
          {"lambda", report.lambda},
          {"changed_operators", changes_json(report.trials.front().report.changes)},
          {"proxy_encoding", report.encoding},
          {"proxy_fit_srcc", report.proxy_fit_srcc},
          {"trials", std::move(trials)}};
}

Json to_json(const OneProxyReport& report) {
  const auto& result = report.result;
  auto steps = Json::array();
  for (const auto& step : result.steps) steps.push_back(step_json(step));
  auto pareto = Json::array();
  for (const auto& design : result.pareto) {
    pareto.push_back({{"design", report.space->format(design.design)},
                      {"latency_ms", design.latency_ms},
                      {"accuracy", design.accuracy}});
  }
  return {{"decision", result.adapted ? "adapt" : "reuse"},
          {"threshold", report.threshold},
          {"reaches_threshold", result.reaches_threshold},
          {"steps", std::move(steps)},
          {"changed_operators",
           result.adapted ? changes_json(result.adapted->report().changes) : Json::array()},
          {"pareto", std::move(pareto)},
          {"dropped", result.dropped},
          {"measurements", result.measurements}};
}

}  // namespace fleetfit::app
