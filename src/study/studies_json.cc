#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"
#include "fleetfit/report/words.h"
#include "fleetfit/study/studies.h"
#include "study/sample.h"

namespace fleetfit::study {
namespace {

using nlohmann::ordered_json;

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json budget_json(const std::optional<tune::Budget>& budget) {
  if (!budget) return nullptr;
  return {{"epochs", budget->epochs}, {"data_fraction", budget->data_fraction}};
}

/// {"accuracy": 0.9, "latency on local, ms": 12}
ordered_json values_json(const std::vector<std::string>& labels, const TrialView& trial) {
  if (trial.values.empty()) return nullptr;
  ordered_json values = ordered_json::object();
  for (std::size_t i = 0; i < trial.values.size() && i < labels.size(); ++i)
    values[labels[i]] = trial.values[i];
  return values;
}

ordered_json deployment_json(const Deployment& deployment) {
  const auto& cost = deployment.setting.cost;
  const auto& response = deployment.setting.response;
  return {{"device", deployment.device},
          {"params", tune::to_json(deployment.setting.setting)},
          {"latency_ms", cost->cost.latency_ms},
          {"throughput", response.throughput},
          {"energy_mj", core::or_null(response.energy_mj)},
          {"energy_source", text_or_null(cost->energy_source)},
          {"response_ms",
           {{"mean", response.mean_ms}, {"p95", response.p95_ms}, {"p99", response.p99_ms}}},
          {"saturated", response.saturated},
          {"latency_spread_ms", cost->spread_ms},
          {"source", cost->predicted ? "predicted" : "measured"},
          {"note", text_or_null(cost->note)}};
}

ordered_json candidate_json(const std::vector<std::string>& labels, const Candidate& candidate) {
  const auto& trial = candidate.trial;
  ordered_json json = {
      {"trial", trial.record.number},
      {"status", status_name(trial.record.state)},
      {"params", ordered_json::parse(trial.params_by_group, nullptr, false)},
      {"accuracy", trial.result ? ordered_json(trial.result->accuracy) : ordered_json(nullptr)},
      {"objective", values_json(labels, trial)},
      {"budget", budget_json(trial.budget)}};
  if (trial.result) {
    json["training"] = {{"time_s", trial.result->training_s},
                        {"energy_j", core::or_null(trial.result->training_j)}};
  }
  json["inference"] = ordered_json::array();
  for (const auto& deployment : candidate.deployments)
    json["inference"].push_back(deployment_json(deployment));
  if (!candidate.undeployable.empty()) json["undeployable"] = candidate.undeployable;
  json["model_file"] = text_or_null(trial.record.model_file);
  return json;
}

}  // namespace

ordered_json tuning_json(const store::StudyRecord& study) {
  return {{"time_s", study.tuning_s}, {"energy_j", core::or_null(study.tuning_j)}};
}

ordered_json counts_json(const store::TrialCounts& counts) {
  return {{"waiting", counts.queued + counts.paused},
          {"running", counts.running},
          {"finished", counts.finished},
          {"stopped", counts.stopped},
          {"failed", counts.failed},
          {"all", counts.all()}};
}

ordered_json trial_json(const std::vector<std::string>& labels, const TrialView& trial) {
  const auto& record = trial.record;
  ordered_json json = {
      {"trial", record.number},
      {"status", status_name(record.state)},
      {"params", ordered_json::parse(record.params, nullptr, false)},
      {"budget", budget_json(trial.budget)},
      {"accuracy", nullptr},
      {"reason", text_or_null(record.reason)},
      {"progress", text_or_null(record.progress)},
      {"objective", values_json(labels, trial)},
      {"feasible", trial.result ? ordered_json(!(trial.violation > 0)) : ordered_json(nullptr)},
      {"bracket", record.bracket},
      {"level", record.level}};
  if (trial.result) {
    json["accuracy"] = trial.result->accuracy;
    json["training_s"] = trial.result->training_s;
    json["training_j"] = core::or_null(trial.result->training_j);
  }
  return json;
}

ordered_json rung_json(const RungView& rung) {
  return {{"bracket", rung.bracket},
          {"level", rung.level},
          {"budget", budget_json(rung.budget)},
          {"ended", rung.ended},
          {"promoted", rung.promoted},
          {"best_accuracy", rung.best_accuracy}};
}

ordered_json to_json(const StudySummary& summary) {
  return {{"name", summary.study.name},
          {"created", report::date_text(summary.study.created)},
          {"done", summary.study.done},
          {"trials", counts_json(summary.trials)},
          {"best_accuracy", core::or_null(summary.best_accuracy)},
          {"tuning", tuning_json(summary.study)}};
}

ordered_json to_json(const std::vector<StudySummary>& studies) {
  ordered_json list = ordered_json::array();
  for (const auto& summary : studies) list.push_back(to_json(summary));
  return list;
}

ordered_json to_json(const StudyView& view) {
  const auto labels = objective_labels(view.study);
  ordered_json json = {{"name", view.record.name},
                       {"created", report::date_text(view.record.created)},
                       {"done", view.record.done},
                       {"objective", labels},
                       {"counts", counts_json(view.counts)},
                       {"trials_total", view.counts.all()},
                       {"inference_tunings", view.inference_tunings},
                       {"tuning", tuning_json(view.record)}};
  json["best"] = ordered_json::array();
  for (const auto& trial : view.best) json["best"].push_back(trial_json(labels, trial));
  json["rungs"] = ordered_json::array();
  for (const auto& rung : view.rungs) json["rungs"].push_back(rung_json(rung));
  json["trials"] = ordered_json::array();
  for (const auto& trial : view.trials) json["trials"].push_back(trial_json(labels, trial));
  return json;
}

ordered_json to_json(const BestOfStudy& best) {
  const auto labels = objective_labels(best.study);
  ordered_json json = best.best ? candidate_json(labels, *best.best)
                                : ordered_json{{"trial", nullptr}, {"reason", best.why_none}};
  json["tuning"] = tuning_json(best.record);
  if (best.nearest) json["nearest"] = candidate_json(labels, *best.nearest);
  if (!best.pareto.empty()) {
    json["pareto"] = ordered_json::array();
    for (const auto& candidate : best.pareto)
      json["pareto"].push_back(candidate_json(labels, candidate));
  }
  return json;
}

ordered_json to_json(const ExportedStudy& written) {
  return {{"file", written.file}, {"trials", written.trials}};
}

ordered_json to_json(const WrittenReport& written) {
  return {{"file", written.file},
          {"bytes", written.bytes},
          {"trials", written.trials},
          {"trials_seen", written.trials_seen}};
}

}  // namespace fleetfit::study
