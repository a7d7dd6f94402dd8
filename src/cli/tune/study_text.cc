#include "cli/tune/study_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/text_table.h"

namespace fleetfit::cli {
namespace {

using study::TrialView;

constexpr std::size_t kNewest = 10;
constexpr std::size_t kMostReason = 60;
constexpr std::size_t kMostPareto = 20;

std::string seconds_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.3g} min", seconds / 60);
  return fmt::format("{:.3g} h", seconds / 3600);
}

/// "layers 34, learning_rate 0.01" of a flat document.
std::string params_line(const std::string& params) {
  const auto document = nlohmann::ordered_json::parse(params, nullptr, false);
  std::vector<std::string> parts;
  for (const auto& [name, value] : document.items()) {
    const auto text = value.is_string()         ? value.get<std::string>()
                      : value.is_number_float() ? fmt::format("{:.4g}", value.get<double>())
                                                : value.dump();
    parts.push_back(fmt::format("{} {}", name, text));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string budget_text(const std::optional<tune::Budget>& budget) {
  if (!budget) return "-";
  return fmt::format("{} x {:.3g} %", budget->epochs, 100 * budget->data_fraction);
}

std::string number_text(double number) { return fmt::format("{:.4g}", number); }

std::string shortened(std::string text) {
  if (text.size() > kMostReason) text = text.substr(0, kMostReason - 3) + "...";
  return text;
}

std::string trials_text(const tune::Study& study, std::span<const TrialView> trials) {
  TextTable table("trial {} | status | epochs x data | accuracy {}");
  const auto labels = study::objective_labels(study);
  for (const auto& label : labels)
    if (label != "accuracy") table.add_column(label, "{}");
  table.add_column("parameters");
  for (const auto& trial : trials) {
    table.add(trial.record.number, study::status_name(trial.record.state),
              budget_text(trial.budget), trial.result ? number_text(trial.result->accuracy) : "-");
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i] != "accuracy")
        table.append(i < trial.values.size() ? number_text(trial.values[i]) : "-");
    auto params = params_line(trial.record.params);
    for (const auto& words : {trial.record.reason, trial.record.progress})
      if (!words.empty()) params += fmt::format(" ({})", shortened(words));
    table.append(params);
  }
  return table.text();
}

std::string rungs_text(std::span<const study::RungView> rungs) {
  if (rungs.size() < 2) return "";
  TextTable table(
      "bracket {} | level {} | epochs x data | ended {} | went on {} | best accuracy {:.4g}");
  for (const auto& rung : rungs)
    table.add(rung.bracket, rung.level, budget_text(rung.budget), rung.ended, rung.promoted,
              rung.best_accuracy);
  return "\nRungs\n" + table.text();
}

std::string deployments_text(const study::Candidate& candidate) {
  std::string text;
  if (!candidate.deployments.empty()) {
    TextTable table(
        "device | run it with | latency {:.4g} ms | p95 response {:.4g} ms | samples/s {:.4g} | "
        "energy/sample {} | source");
    for (const auto& [device, trial] : candidate.deployments) {
      const auto& response = trial.response;
      table.add(device, tune::describe(trial.setting), trial.cost->cost.latency_ms, response.p95_ms,
                response.throughput,
                response.energy_mj
                    ? fmt::format("{:.4g} mJ {}", *response.energy_mj, trial.cost->energy_source)
                    : "-",
                trial.cost->predicted ? "predicted" : "measured");
    }
    text += "\n" + table.text();
  }
  for (const auto& problem : candidate.undeployable)
    text += fmt::format("cannot be run on {}\n", problem);
  return text;
}

std::string candidate_text(const study::BestOfStudy& best, const study::Candidate& candidate) {
  const auto& trial = candidate.trial;
  auto text = fmt::format("trial      {} of study {}, {}\n", trial.record.number, best.record.name,
                          study::status_name(trial.record.state));
  if (trial.result) {
    text += fmt::format("accuracy   {:.4g} after {} epochs on {:.3g} % of the data\n",
                        trial.result->accuracy, trial.result->budget.epochs,
                        100 * trial.result->budget.data_fraction);
  }
  const auto labels = study::objective_labels(best.study);
  for (std::size_t i = 0; i < trial.values.size() && i < labels.size(); ++i)
    if (labels[i] != "accuracy")
      text += fmt::format("objective  {}: {:.4g}\n", labels[i], trial.values[i]);
  const auto groups = nlohmann::ordered_json::parse(trial.params_by_group, nullptr, false);
  for (const auto& [group, values] : groups.items())
    if (!values.empty()) text += fmt::format("{:<11}{}\n", group, params_line(values.dump()));
  if (!trial.record.model_file.empty())
    text += fmt::format("network    {}\n", trial.record.model_file);
  return text + deployments_text(candidate);
}

std::string pareto_text(const study::BestOfStudy& best) {
  if (best.pareto.size() < 2) return "";
  std::vector<TrialView> trials;
  for (const auto& candidate : best.pareto) trials.push_back(candidate.trial);
  const auto shown = std::min(trials.size(), kMostPareto);
  auto text = fmt::format("\nPareto set, {} trials", trials.size());
  if (shown < trials.size()) text += fmt::format(", the first {} by the first objective", shown);
  return text + "\n" + trials_text(best.study, std::span(trials).first(shown));
}

}  // namespace

std::string studies_text(const std::vector<study::StudySummary>& studies) {
  if (studies.empty()) return "There are no studies yet; 'fleetfit tune' makes one.\n";
  TextTable table(
      "study | trials {} | finished {} | stopped {} | failed {} | best accuracy {:.4g} | time {} | "
      "state");
  for (const auto& [study, trials, best] : studies)
    table.add(study.name, trials.all(), trials.finished, trials.stopped, trials.failed, best,
              seconds_text(study.tuning_s),
              study.done           ? "done"
              : trials.running > 0 ? "running"
                                   : "open");
  return table.text();
}

std::string study_text(const study::StudyView& view) {
  const auto& counts = view.counts;
  auto text =
      fmt::format("study      {}, {}\n", view.record.name, view.record.done ? "done" : "open");
  text += fmt::format("objective  {}\n", fmt::join(study::objective_labels(view.study), "; "));
  text += fmt::format("trials     {}: {} finished, {} stopped, {} failed, {} running, {} waiting\n",
                      counts.all(), counts.finished, counts.stopped, counts.failed, counts.running,
                      counts.queued + counts.paused);
  text += fmt::format("time       {}{}\n", seconds_text(view.record.tuning_s),
                      view.record.tuning_j ? fmt::format(", {:.4g} J", *view.record.tuning_j) : "");
  if (view.study.inference)
    text += fmt::format("inference  tuned {} times for this study\n", view.inference_tunings);
  if (!view.best.empty()) text += "\nBest\n" + trials_text(view.study, view.best);
  const auto newest = std::min(kNewest, view.trials.size());
  if (newest > 0)
    text +=
        fmt::format("\nNewest\n{}", trials_text(view.study, std::span(view.trials).last(newest)));
  text += rungs_text(view.rungs);
  if (view.rungs.size() >= 2 && static_cast<std::size_t>(counts.all()) > view.trials.size())
    text += fmt::format("of the newest {} trials\n", view.trials.size());
  return text;
}

std::string best_text(const study::BestOfStudy& best) {
  if (best.best) return candidate_text(best, *best.best) + pareto_text(best);
  auto text = fmt::format("study {} has no best trial: {}\n", best.record.name, best.why_none);
  if (best.nearest) text += "\n" + candidate_text(best, *best.nearest);
  return text;
}

std::string report_text(const study::WrittenReport& written) {
  return fmt::format("{}: {}, {} trials{}\n", written.file, with_prefix(written.bytes, "B"),
                     written.trials,
                     written.trials_seen < written.trials
                         ? fmt::format(", drawn from {} of them", written.trials_seen)
                         : "");
}

std::string asked_text(const study::Asked& asked) {
  if (asked.trials.empty())
    return asked.done ? "The study is done.\n" : "Nothing to evaluate until others are told.\n";
  TextTable table("trial {} | epochs {} | data {:.3g} % | parameters");
  for (const auto& trial : asked.trials)
    table.add(trial.trial, trial.budget.epochs, 100 * trial.budget.data_fraction,
              params_line(trial.params));
  return table.text();
}

std::string told_text(const std::vector<study::Told>& told) {
  TextTable table("trial {} | status | objective {} | limits");
  for (const auto& one : told)
    table.add(one.trial, one.status,
              one.values.empty() ? "-" : fmt::format("{:.5g}", fmt::join(one.values, ", ")),
              one.keeps_limits ? "kept" : "broken");
  return table.text();
}

std::string confirmed_text(const app::ConfirmedInference& confirmed) {
  TextTable table;
  table.add_column(confirmed.device);
  table.add_columns(
      "mean ms {:.4g} | p95 ms {:.4g} | p99 ms {:.4g} | samples/s {:.4g} | a run, ms {:.4g} | "
      "busy {:.0f} % | energy a sample {}");
  const auto add = [&](const char* name, const tune::Response& r, const std::string& source) {
    table.add(name, r.mean_ms, r.p95_ms, r.p99_ms, r.throughput, r.run_ms, 100 * r.busy,
              r.energy_mj ? fmt::format("{:.3g} mJ {}", *r.energy_mj, source) : "-");
  };
  add("expected", confirmed.expected, "");
  add("real", confirmed.real, confirmed.energy_source);
  std::string text = fmt::format("{}, {}, for real:\n{}", tune::describe(confirmed.scenario),
                                 tune::describe(confirmed.setting), table.text());
  text += fmt::format(
      "The expected {} is off by {:+.1f} %.\n",
      confirmed.scenario.kind == tune::ScenarioKind::offline ? "throughput" : "response",
      100 * confirmed.error());
  for (const auto& note : confirmed.notes) text += note + "\n";
  return text;
}

}  // namespace fleetfit::cli
