#include <nlohmann/json.hpp>

#include "fleetfit/app/searching.h"
#include "fleetfit/core/json.h"

namespace fleetfit::app {
namespace {

using nlohmann::ordered_json;

ordered_json candidate_json(const space::Space& space, const std::vector<std::string>& costs,
                            const search::Candidate& candidate) {
  ordered_json json{{"design", space.format(candidate.design)}};
  for (std::size_t i = 0; i < costs.size(); ++i) json[costs[i]] = candidate.costs[i];
  json["accuracy"] = candidate.accuracy;
  return json;
}

template <class Report>
ordered_json candidate_or_null(const Report& report,
                               const std::optional<search::Candidate>& candidate) {
  if (!candidate) return nullptr;
  return candidate_json(*report.space, report.costs, *candidate);
}

ordered_json sources_json(const std::vector<SourceReport>& sources) {
  ordered_json json = ordered_json::object();
  for (const auto& source : sources) {
    ordered_json one{{"source", source.text},
                     {"from", source.is_measured ? "measured" : "predicted"},
                     {"about", source.about}};
    if (source.rank_correlation) one["rank_correlation"] = *source.rank_correlation;
    json[source.quantity] = std::move(one);
  }
  return json;
}

ordered_json hypervolume_json(const SearchReport& report) {
  if (!report.hypervolume) return nullptr;
  ordered_json reference = ordered_json::object();
  for (std::size_t i = 0; i < report.costs.size(); ++i)
    reference[report.costs[i]] = report.hypervolume->costs[i];
  reference["accuracy"] = report.hypervolume->accuracy;
  return {{"value", report.hypervolume->value}, {"reference", std::move(reference)}};
}

}  // namespace

ordered_json to_json(const SearchReport& report) {
  ordered_json json{{"space", report.space->name()},
                    {"strategy", report.strategy},
                    {"best", candidate_or_null(report, report.found.best)}};
  if (report.found.nearest) json["nearest"] = candidate_or_null(report, report.found.nearest);
  json["pareto"] = core::json_list(report.found.pareto, [&](const auto& candidate) {
    return candidate_json(*report.space, report.costs, candidate);
  });
  json["evaluations"] = report.found.evaluations;
  json["unknown"] = report.found.unknown;
  json["elapsed_s"] = report.elapsed_s;
  json["hypervolume"] = hypervolume_json(report);
  json["budgets"] = ordered_json::object();
  for (std::size_t i = 0; i < report.costs.size(); ++i)
    if (report.budgets[i]) json["budgets"][report.costs[i]] = *report.budgets[i];
  json["sources"] = sources_json(report.sources);
  json["measurements"] = report.spent.measurements;
  json["machine_s"] = report.spent.machine_s;
  if (report.found.stopped) json["stopped"] = true;
  return json;
}

ordered_json to_json(const BisectReport& report) {
  ordered_json json{{"space", report.space->name()},
                    {"best", candidate_or_null(report, report.result.best)}};
  if (report.result.nearest) json["nearest"] = candidate_or_null(report, report.result.nearest);
  json["steps"] = ordered_json::array();
  for (const auto& step : report.result.steps) {
    ordered_json one;
    if (step.weights.size() == 1) {
      one["t"] = step.weights[0];
    } else {
      one["t"] = step.weights;
    }
    one.update(candidate_json(*report.space, report.costs, step.measured));
    one["phase"] = step.phase == search::BisectPhase::bisection ? "bisection" : "neighbour";
    json["steps"].push_back(std::move(one));
  }
  json["measurements"] = report.result.measurements;
  json["machine_s"] = report.machine_s;
  json["machine_s_from"] = report.machine_s_is_measured ? "measured" : "assumed";
  json["elapsed_s"] = report.elapsed_s;
  json["budgets"] = ordered_json::object();
  for (std::size_t i = 0; i < report.costs.size(); ++i)
    json["budgets"][report.costs[i]] = report.budgets[i];
  json["sources"] = sources_json(report.sources);
  for (const auto& baseline : report.baselines) {
    ordered_json one{{"best", candidate_or_null(report, baseline.best)},
                     {"measurements", baseline.measurements}};
    if (!baseline.remark.empty()) one["remark"] = baseline.remark;
    json["baselines"][baseline.name] = std::move(one);
  }
  json["cost"] = {{"devices", report.devices},
                  {"each_device_s", report.fleet.each_device_s},
                  {"each_predictor_s", report.fleet.each_predictor_s},
                  {"predictor_measurements", report.predictor_measurements},
                  {"by_proxy_s", report.fleet.proxy_s},
                  {"by_predictors_s", report.fleet.predictors_s},
                  {"ratio", report.fleet.ratio()}};
  return json;
}

}  // namespace fleetfit::app
