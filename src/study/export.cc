#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/report/words.h"
#include "fleetfit/study/studies.h"
#include "study/sample.h"

namespace fleetfit::study {
namespace {

using core::CsvCell;

constexpr std::size_t kPage = 10'000;

std::vector<std::string> header_of(const tune::Study& study) {
  std::vector<std::string> header = {"trial", "status", "bracket",
                                     "level", "epochs", "data_fraction"};
  for (const auto& parameter : study.parameters.all()) header.push_back(parameter.name);
  header.insert(header.end(), {"accuracy", "loss", "training_s", "training_j"});
  // A goal may be the accuracy itself, or called like a parameter.
  for (const auto& label : objective_labels(study)) header.push_back("objective: " + label);
  header.emplace_back("limits_kept");
  if (study.inference)
    for (const auto& device : study.inference->devices)
      for (const auto* what : {"latency_ms", "throughput", "energy_mj"})
        header.push_back(fmt::format("{} on {}", what, device));
  header.insert(header.end(), {"structure", "model_file", "worker", "ended", "reason"});
  return header;
}

CsvCell cell_of(const std::optional<double>& number) {
  return number ? CsvCell(*number) : CsvCell();
}

/// A parameter's value as it is written in study files.
CsvCell cell_of(const nlohmann::ordered_json& params, const std::string& name) {
  const auto at = params.find(name);
  if (at == params.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  return at->dump();
}

void add_result(const SeenTrial& seen, std::vector<CsvCell>& row) {
  if (const auto& result = seen.view.result) {
    row.insert(row.end(), {result->accuracy, cell_of(result->loss), result->training_s,
                           cell_of(result->training_j)});
  } else {
    row.insert(row.end(), 4, CsvCell());
  }
}

void add_inference(const tune::Study& study, const SeenTrial& seen, std::vector<CsvCell>& row) {
  if (!study.inference) return;
  for (std::size_t i = 0; i < study.inference->devices.size(); ++i) {
    if (seen.trial.inference) {
      const auto& known = (*seen.trial.inference)[i];
      row.insert(row.end(), {known.latency_ms, known.throughput, cell_of(known.energy_mj)});
    } else {
      row.insert(row.end(), 3, CsvCell());
    }
  }
}

std::vector<CsvCell> row_of(const tune::Study& study, const SeenTrial& seen) {
  const auto& view = seen.view;
  const auto& record = view.record;
  std::vector<CsvCell> row = {record.number, std::string(status_name(record.state)), record.bracket,
                              record.level};
  if (view.budget) {
    row.insert(row.end(), {view.budget->epochs, view.budget->data_fraction});
  } else {
    row.insert(row.end(), 2, CsvCell());
  }
  const auto params = study.parameters.to_json(seen.trial.point);
  for (const auto& parameter : study.parameters.all())
    row.push_back(cell_of(params, parameter.name));
  add_result(seen, row);
  for (std::size_t i = 0; i < study.objective.count(); ++i)
    row.push_back(i < view.values.size() ? CsvCell(view.values[i]) : CsvCell());
  row.push_back(!view.result ? CsvCell() : CsvCell(view.violation > 0 ? "no" : "yes"));
  add_inference(study, seen, row);
  row.insert(row.end(), {record.structure, record.model_file, record.worker});
  row.push_back(record.levels.empty() ? CsvCell()
                                      : CsvCell(report::date_text(record.levels.back().ended)));
  row.emplace_back(record.reason);
  return row;
}

}  // namespace

Result<ExportedStudy> export_study(store::StudyStore& store, std::string_view name,
                                   const std::filesystem::path& output) {
  FLEETFIT_ASSIGN(const auto opened, open_study(store, name));
  FLEETFIT_ASSIGN(auto file, core::FileWriter::open(output));
  const auto header = header_of(opened.study);
  const auto title = core::CsvWriter(header).text();
  FLEETFIT_TRY(file.write(title));
  ExportedStudy exported{.file = output.string()};
  for (;;) {
    FLEETFIT_ASSIGN(auto page,
                    store.list_trials(name, exported.trials, kPage, store::LevelDetail::all));
    if (page.empty()) break;
    exported.trials += static_cast<std::int64_t>(page.size());
    FLEETFIT_ASSIGN(const auto trials, see_trials(opened, std::move(page)));
    core::CsvWriter rows(header);
    for (const auto& seen : trials) rows.add_row(row_of(opened.study, seen));
    const auto text = std::string_view(rows.text()).substr(title.size());
    FLEETFIT_TRY(file.write(text));
  }
  FLEETFIT_TRY(file.commit());
  return exported;
}

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
  json["inference"] = core::json_list(candidate.deployments, deployment_json);
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
  return core::json_list(studies, [&](const auto& summary) { return to_json(summary); });
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
  json["best"] =
      core::json_list(view.best, [&](const auto& trial) { return trial_json(labels, trial); });
  json["rungs"] = core::json_list(view.rungs, rung_json);
  json["trials"] =
      core::json_list(view.trials, [&](const auto& trial) { return trial_json(labels, trial); });
  return json;
}

ordered_json to_json(const BestOfStudy& best) {
  const auto labels = objective_labels(best.study);
  ordered_json json = best.best ? candidate_json(labels, *best.best)
                                : ordered_json{{"trial", nullptr}, {"reason", best.why_none}};
  json["tuning"] = tuning_json(best.record);
  if (best.nearest) json["nearest"] = candidate_json(labels, *best.nearest);
  if (!best.pareto.empty()) {
    json["pareto"] = core::json_list(
        best.pareto, [&](const auto& candidate) { return candidate_json(labels, candidate); });
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
