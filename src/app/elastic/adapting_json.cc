#include <nlohmann/json.hpp>

#include "fleetfit/app/adapting.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::app {

namespace {

nlohmann::ordered_json subnet_json(const std::optional<AdaptedSubnet>& subnet) {
  if (!subnet) return nullptr;
  return {{"subnet", subnet->subnet},
          {"latency_ms", subnet->latency_ms},
          {"accuracy", subnet->accuracy}};
}

}  // namespace

nlohmann::ordered_json to_json(const AdaptReport& report) {
  nlohmann::ordered_json json;
  json["best"] = subnet_json(report.best);
  if (report.compared) json["compared"] = subnet_json(report.compared);
  json["fastest"] = {{"subnet", report.fastest.subnet}, {"latency_ms", report.fastest.latency_ms}};
  json["budget_ms"] = report.budget_ms;
  json["device"] = report.device;
  json["strategy"] = report.strategy;
  json["evaluated"] = report.evaluated;
  json["elapsed_s"] = report.elapsed_s;
  json["profile_s"] = report.profile_s;
  json["total_s"] = report.total_s;
  json["reuse"] = {{"saved_fraction", report.reuse.saved_fraction},
                   {"peak_bytes", report.reuse.peak_bytes},
                   {"runs", report.reuse.runs},
                   {"runs_without", report.reuse.runs_without},
                   {"spent_s", report.reuse.spent_s},
                   {"without_s", report.reuse.without_s}};
  json["pool"] = core::to_json(report.pool);
  json["table"] = {{"from", report.table_from}, {"error_percent", report.table_error_percent}};
  json["images"] = {{"search", report.searched_images},
                    {"choice", report.choice_images},
                    {"test", report.test_images},
                    {"labels", report.labels}};
  json["peak_memory_bytes"] = report.peak_memory_bytes;
  json["memory_limit_bytes"] = report.memory_limit_bytes;
  json["bundle_bytes"] = report.bundle_bytes;
  json["model_bytes"] = report.model_bytes;
  json["stopped"] = report.stopped;
  return json;
}

}  // namespace fleetfit::app
