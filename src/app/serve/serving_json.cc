#include <nlohmann/json.hpp>

#include "fleetfit/app/serving.h"

namespace fleetfit::app {
namespace {

using nlohmann::ordered_json;

ordered_json share(std::size_t part, std::size_t whole) {
  if (whole == 0) return nullptr;
  return static_cast<double>(part) / static_cast<double>(whole);
}

ordered_json phase_json(const adapt::LoadPhase& phase) {
  return {{"start_s", phase.start_s},
          {"ratio", phase.ratio},
          {"requests", phase.requests},
          {"within_budget", share(phase.within_budget, phase.requests)},
          {"within_budget_after_1s", share(phase.settled_within_budget, phase.settled)},
          {"expected_accuracy", phase.settled > 0 ? ordered_json(phase.accuracy) : ordered_json()},
          {"accuracy", share(phase.right, phase.labelled)},
          {"subnet", phase.subnet}};
}

ordered_json load_json(const adapt::LoadReport& load) {
  ordered_json json = {
      {"changes", load.changes}, {"accuracy_returned", nullptr}, {"phases", ordered_json::array()}};
  if (const auto returned = adapt::accuracy_returned(load)) json["accuracy_returned"] = *returned;
  for (const auto& phase : load.phases) json["phases"].push_back(phase_json(phase));
  return json;
}

}  // namespace

ordered_json to_json(const ServeSummary& summary) {
  const auto& report = summary.report;
  ordered_json json = {
      {"requests", report.requests},
      {"within_budget", share(report.within_budget, report.requests)},
      {"within_budget_after_1s", share(report.load.settled_within_budget, report.load.settled)},
      {"switches", report.switches},
      {"accuracy", share(report.right, report.labelled)},
      {"median_ms", report.median_ms},
      {"p95_ms", report.p95_ms},
      {"peak_memory_bytes", summary.peak_memory_bytes},
      {"prepared_bytes", report.prepared_bytes},
      {"memory_limit_bytes", summary.memory_limit_bytes},
      {"bundle_bytes", summary.bundle_bytes},
      {"model_bytes", summary.model_bytes},
      {"longest_switch_us", report.longest_switch_us},
      {"budget_ms", summary.budget_ms},
      {"tail", summary.tail},
      {"budget_met", report.budget_met},
      {"ratio", nullptr},
      {"subnet", report.subnet},
      {"elapsed_s", summary.elapsed_s},
      {"load", load_json(report.load)},
      {"subnets", ordered_json::array()}};
  if (report.ratio) json["ratio"] = *report.ratio;
  for (const auto& use : report.subnets) {
    json["subnets"].push_back({{"subnet", use.subnet},
                               {"requests", use.requests},
                               {"mean_ms", use.mean_ms},
                               {"estimated_ms", use.estimated_ms},
                               {"accuracy", use.accuracy}});
  }
  return json;
}

}  // namespace fleetfit::app
