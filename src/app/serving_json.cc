#include <nlohmann/json.hpp>

#include "fleetfit/app/serving.h"

namespace fleetfit::app {
namespace {

using nlohmann::ordered_json;

ordered_json share(std::size_t part, std::size_t whole) {
  if (whole == 0) return nullptr;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ordered_json to_json(const ServeSummary& summary) {
  const auto& report = summary.report;
  ordered_json json = {{"requests", report.requests},
                       {"within_budget", share(report.within_budget, report.requests)},
                       {"switches", report.switches},
                       {"accuracy", share(report.right, report.labelled)},
                       {"median_ms", report.median_ms},
                       {"p95_ms", report.p95_ms},
                       {"peak_memory_bytes", summary.peak_memory_bytes},
                       {"prepared_bytes", report.prepared_bytes},
                       {"longest_switch_us", report.longest_switch_us},
                       {"budget_ms", summary.budget_ms},
                       {"tail", summary.tail},
                       {"budget_met", report.budget_met},
                       {"ratio", nullptr},
                       {"subnet", report.subnet},
                       {"elapsed_s", summary.elapsed_s},
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
