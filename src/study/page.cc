#include "study/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "fleetfit/report/html.h"
#include "fleetfit/report/words.h"
#include "study/importance.h"

namespace fleetfit::study {
namespace {

using store::TrialState;

constexpr std::size_t kMostRows = 50;

std::string budget_text(const tune::Budget& budget) {
  return fmt::format("{}, {:.3g} % of the data", report::counted(budget.epochs, "epoch"),
                     100 * budget.data_fraction);
}

std::string energy_text(double joules) {
  if (joules >= 3.6e6) return fmt::format("{:.3g} kWh", joules / 3.6e6);
  if (joules >= 1e3) return fmt::format("{:.3g} kJ", joules / 1e3);
  return fmt::format("{:.3g} J", joules);
}

const SeenTrial* best_of(const StudyPageInput& input) {
  if (!input.best) return nullptr;
  const auto number = static_cast<std::size_t>(*input.best);
  const auto at = std::ranges::lower_bound(input.sample.trials, number, {},
                                           [](const SeenTrial& seen) { return seen.trial.number; });
  if (at == input.sample.trials.end() || at->trial.number != number) return nullptr;
  return &*at;
}

// --- head ---

std::string counts_text(const store::TrialCounts& counts) {
  std::string text = fmt::format("{} trials: {} trained to the end, {} stopped before, {} failed",
                                 counts.all(), counts.finished, counts.stopped, counts.failed);
  if (counts.running > 0) text += fmt::format(", {} running", counts.running);
  if (counts.queued + counts.paused > 0)
    text += fmt::format(", {} waiting", counts.queued + counts.paused);
  return text + ".";
}

std::string sample_text(const StudySample& sample) {
  if (sample.is_whole) return "";
  return fmt::format(
      " This page is made from {} of them: the first, the last, the best, and pieces in between. "
      "Counts and the best trial are those of all.",
      sample.trials.size());
}

std::string head(const StudyPageInput& input, const SeenTrial* best) {
  const auto& record = input.opened.record;
  std::vector<report::Fact> facts;
  if (best != nullptr && best->view.result) {
    if (best->view.result->accuracy > 0)  // studies by ask and tell may have none
      facts.push_back({"best accuracy", fmt::format("{:.4g}", best->view.result->accuracy)});
    const auto labels = objective_labels(input.opened.study);
    for (std::size_t i = 0; i < best->view.values.size(); ++i)
      if (labels[i] != "accuracy")
        facts.push_back({labels[i], fmt::format("{:.4g}", best->view.values[i])});
  }
  facts.push_back({"trials", fmt::format("{}", input.sample.counts.all())});
  if (record.tuning_s > 0)
    facts.push_back({"time of tuning", report::duration_text(record.tuning_s)});
  if (record.tuning_j) facts.push_back({"energy of training", energy_text(*record.tuning_j)});
  if (input.opened.study.inference)
    facts.push_back({"inference tunings", fmt::format("{}", input.tunings.size())});
  return report::paragraph(fmt::format("{}{} Begun {}; {}.", counts_text(input.sample.counts),
                                       sample_text(input.sample), report::date_text(record.created),
                                       record.done ? "done" : "not done yet")) +
         report::facts(facts);
}

// --- what to deploy ---

std::string setting_cell(const std::optional<std::int64_t>& value) {
  return value ? fmt::format("{}", *value) : "–";
}

std::string source_text(const tune::InferenceTrial& trial) {
  std::string text = trial.cost->predicted ? "predicted" : "measured";
  if (trial.response.saturated) text += "; more arrives than is answered";
  if (!trial.cost->note.empty()) text += "; " + trial.cost->note;
  return report::escape_html(text);
}

void add_deployment(report::Table& table, const Deployment& deployment) {
  const auto& setting = deployment.setting.setting;
  const auto& cost = deployment.setting.cost;
  const auto& response = deployment.setting.response;
  const auto energy = response.energy_mj ? fmt::format("{:.3g}", *response.energy_mj) : "–";
  table.add(
      {report::escape_html(deployment.device), fmt::format("{}", setting.batch),
       setting_cell(setting.cores), setting_cell(setting.threads),
       setting.precision ? report::escape_html(*setting.precision) : "–",
       fmt::format("{:.4g}{}", cost->cost.latency_ms,
                   cost->spread_ms > 0 ? fmt::format(" ± {:.2g}", cost->spread_ms) : ""),
       fmt::format("{:.4g}", response.mean_ms), fmt::format("{:.4g}", response.p95_ms),
       fmt::format("{:.4g}", response.p99_ms), fmt::format("{:.4g}", response.throughput),
       cost->energy_source.empty() ? energy : fmt::format("{} ({})", energy, cost->energy_source),
       source_text(deployment.setting)});
}

std::string deployments(const Candidate& candidate) {
  report::Table table({"device", "batch", "cores", "threads", "precision", "latency of a batch, ms",
                       "mean response, ms", "p95", "p99", "samples/s", "mJ per sample",
                       report::words("")});
  for (const auto& deployment : candidate.deployments) add_deployment(table, deployment);
  auto text = table.html();
  for (const auto& problem : candidate.undeployable)
    text += report::paragraph(fmt::format("Cannot be run on {}.", report::escape_html(problem)));
  return text;
}

std::string scenario_text(const tune::Scenario& scenario) {
  switch (scenario.kind) {
    case tune::ScenarioKind::single:
      return "one sample after the other";
    case tune::ScenarioKind::offline:
      return "all samples are there at once";
    case tune::ScenarioKind::server:
      return fmt::format("{} samples every {:g} ms", scenario.samples, scenario.period_ms);
    case tune::ScenarioKind::multistream:
      break;
  }
  return fmt::format("{:g} samples a second, at random times", scenario.rate_hz);
}

std::string param_text(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.6g}", value.get<double>()) : value.dump();
}

std::string params_table(const SeenTrial& seen) {
  report::Table table({"parameter", "value", report::words("group")});
  const auto groups = nlohmann::ordered_json::parse(seen.view.params_by_group, nullptr, false);
  for (const auto& [group, values] : groups.items())
    for (const auto& [name, value] : values.items())
      table.add({report::escape_html(name), report::escape_html(param_text(value)), group});
  return table.html();
}

std::string deploy_section(const StudyPageInput& input, const SeenTrial* best) {
  if (best == nullptr)
    return report::section(
        "What to deploy",
        report::paragraph("No trial keeps all limits of the study, or none has a result yet."));
  const auto& study = input.opened.study;
  const auto candidate = candidate_of(input.opened, *best);
  std::string words = fmt::format("Trial {}", best->trial.number);
  if (best->view.budget) words += ", trained with " + budget_text(*best->view.budget);
  if (!best->view.record.model_file.empty())
    words += fmt::format("; its network is {}", report::escape_html(best->view.record.model_file));
  words += ".";
  if (study.objective.count() > 1)
    words += " Of the Pareto set below, it is nearest to the best of all objectives.";
  if (study.inference)
    words += fmt::format(" Requests: {}.", scenario_text(study.inference->scenario));
  return report::section("What to deploy", words, deployments(candidate) + params_table(*best));
}

// --- several objectives, or accuracy against latency ---

Plane objective_plane(const StudyPageInput& input) {
  const auto& study = input.opened.study;
  const auto labels = objective_labels(study);
  // The second objective to the right: accuracy stands first in most study files.
  Plane plane{.x_label = labels[1],
              .y_label = labels[0],
              .x_is_better_low = !study.objective.goals[1].maximize,
              .y_is_better_low = !study.objective.goals[0].maximize};
  for (const auto& seen : input.sample.trials)
    if (seen.view.values.size() > 1)
      plane.points.push_back({&seen, seen.view.values[1], seen.view.values[0]});
  return plane;
}

Plane latency_plane(const StudyPageInput& input, std::size_t device) {
  Plane plane{
      .x_label = fmt::format("latency on {}, ms", input.opened.study.inference->devices[device]),
      .y_label = "accuracy"};
  for (const auto& seen : input.sample.trials)
    if (seen.trial.inference && device < seen.trial.inference->size() && seen.view.result)
      plane.points.push_back(
          {&seen, (*seen.trial.inference)[device].latency_ms, seen.view.result->accuracy});
  return plane;
}

std::string pareto_table(const StudyPageInput& input) {
  const auto set = pareto_of(input.sample.trials);
  std::vector<report::Column> columns = {"trial"};
  for (const auto& label : objective_labels(input.opened.study)) columns.emplace_back(label);
  columns.push_back(report::words("parameters"));
  report::Table table(std::move(columns));
  for (const auto* seen : std::span(set).first(std::min(set.size(), kMostRows))) {
    std::vector<std::string> cells = {fmt::format("{}", seen->trial.number)};
    for (const double value : seen->view.values) cells.push_back(fmt::format("{:.4g}", value));
    cells.push_back(report::escape_html(params_text(input.opened.study, seen->trial)));
    table.add(cells);
  }
  return report::folded(
      fmt::format("The Pareto set as a table: {}",
                  set.size() > kMostRows
                      ? fmt::format("the first {} of {} trials", kMostRows, set.size())
                      : fmt::format("{} trials", set.size())),
      table.html());
}

std::string planes(const StudyPageInput& input, const StudyDrawing& drawing) {
  const auto& study = input.opened.study;
  if (study.objective.count() > 1) {
    const auto chart = plane_chart(drawing, objective_plane(input));
    if (chart.empty()) return "";
    return report::section("Pareto set",
                           study.objective.count() > 2 ? "The first two objectives." : "",
                           chart + pareto_table(input));
  }
  std::string charts;
  for (std::size_t i = 0; study.inference && i < study.inference->devices.size(); ++i)
    charts += plane_chart(drawing, latency_plane(input, i));
  return report::section("Accuracy against latency", charts);
}

// --- parameters ---

std::string importance_table(const tune::Study& study, const ImportanceReport& found) {
  report::Table table({"parameter", report::words("group"), "explains", report::words(""),
                       report::words("best where it is")});
  for (const auto& one : found.parameters) {
    const auto& parameter = study.parameters.all()[one.parameter];
    table.add({report::escape_html(parameter.name), std::string(tune::to_string(parameter.group)),
               fmt::format("{:.0f} %", 100 * one.share), report::meter(one.share),
               report::escape_html(one.best_at.empty() ? "too few trials" : one.best_at)});
  }
  return table.html();
}

std::string importance_words(const ImportanceReport& found) {
  return fmt::format(
      "How much of the order of trials, from best to worst, each parameter explains by itself: {} "
      "trials are put into groups by its value, and the spread between the groups is compared with "
      "that of all; what chance would give is taken off. What parameters do together is not seen "
      "here, and trials are not spread evenly, as the tuner looks where it is good. All were "
      "compared after {}.",
      found.trials, budget_text(found.budget));
}

// --- rungs ---

std::string rungs_table(std::span<const RungView> rungs) {
  if (rungs.size() < 2) return "";
  std::int64_t most = 1;
  for (const auto& rung : rungs) most = std::max(most, rung.ended);
  report::Table table({"bracket", "level", report::words("budget"), "ended", "went on",
                       "best accuracy", report::words("went on, and did not")});
  for (const auto& rung : rungs) {
    const auto share = [most](std::int64_t count) {
      return static_cast<double>(count) / static_cast<double>(most);
    };
    table.add({fmt::format("{}", rung.bracket), fmt::format("{}", rung.level),
               budget_text(rung.budget), fmt::format("{}", rung.ended),
               fmt::format("{}", rung.promoted), fmt::format("{:.4g}", rung.best_accuracy),
               report::meter(share(rung.promoted), "two") +
                   report::meter(share(rung.ended - rung.promoted))});
  }
  return table.html();
}

// --- failures and costs ---

struct Reason {
  std::string words;  ///< what all of them have in common
  std::int64_t count = 0;
  std::vector<std::int64_t> examples;
};

/// Trials with one reason, most frequent first. Numbers in reasons differ from trial to trial, so
/// that what stands before the first digit decides which are alike.
std::string reasons_table(const StudyPageInput& input, TrialState state) {
  std::map<std::string, Reason> reasons;
  for (const auto& seen : input.sample.trials) {
    const auto& record = seen.view.record;
    if (record.state != state || record.reason.empty()) continue;
    const auto key = record.reason.substr(0, record.reason.find_first_of("0123456789"));
    auto& reason = reasons[key];
    if (reason.count == 0) reason.words = record.reason;
    if (reason.words != record.reason) reason.words = key + "…";
    ++reason.count;
    if (reason.examples.size() < 5) reason.examples.push_back(record.number);
  }
  std::vector<std::pair<std::string, Reason>> list(reasons.begin(), reasons.end());
  std::ranges::stable_sort(list, std::ranges::greater(),
                           [](const auto& entry) { return entry.second.count; });
  if (list.size() > kMostRows) list.resize(kMostRows);
  report::Table table({"trials", report::words("which"), report::words("reason")});
  for (const auto& [key, reason] : list) {
    std::string examples;
    for (const auto number : reason.examples)
      examples += fmt::format("{}{}", examples.empty() ? "" : ", ", number);
    if (static_cast<std::size_t>(reason.count) > reason.examples.size()) examples += ", …";
    table.add({fmt::format("{}", reason.count), examples, report::escape_html(reason.words)});
  }
  return table.html();
}

struct Cost {
  std::int64_t trials = 0;
  double seconds = 0;
  double joules = 0;
  bool joules_known = true;
};

void add_cost(report::Table& table, std::string name, const Cost& cost, double all) {
  table.add({std::move(name), fmt::format("{}", cost.trials), report::duration_text(cost.seconds),
             cost.joules_known && cost.joules > 0 ? energy_text(cost.joules) : "–",
             report::meter(all > 0 ? cost.seconds / all : 0)});
}

std::string costs_table(const StudyPageInput& input) {
  std::map<std::string_view, Cost> costs;
  double all = 0;
  for (const auto& seen : input.sample.trials) {
    auto& cost = costs[status_name(seen.view.record.state)];
    ++cost.trials;
    if (!seen.view.result) continue;
    cost.seconds += seen.view.result->training_s;
    all += seen.view.result->training_s;
    cost.joules_known = cost.joules_known && seen.view.result->training_j.has_value();
    cost.joules += seen.view.result->training_j.value_or(0);
  }
  report::Table table({"", "number", "time", "energy", report::words("")});
  for (const auto* name : {"finished", "stopped", "failed", "running", "waiting"})
    if (costs.contains(name)) add_cost(table, fmt::format("trials: {}", name), costs[name], all);
  if (!input.tunings.empty()) {
    Cost cost{.trials = static_cast<std::int64_t>(input.tunings.size()), .joules_known = false};
    for (const auto& tuning : input.tunings) cost.seconds += tuning.elapsed_s;
    add_cost(table, "inference tunings", cost, all);
  }
  return table.html();
}

std::string costs_words(const StudyPageInput& input) {
  std::string words = "Time of training, added up over all workers";
  if (!input.sample.is_whole) words += "; of the trials that this page is made from";
  return words + ".";
}

// --- the best trials ---

std::string best_table(const StudyPageInput& input) {
  std::vector<const SeenTrial*> trials;
  for (const auto& seen : input.sample.trials)
    if (is_feasible(seen)) trials.push_back(&seen);
  std::ranges::stable_sort(trials, {}, [](const SeenTrial* s) { return s->minimized.front(); });
  if (trials.size() > kMostRows) trials.resize(kMostRows);
  report::Table table({"trial", report::words("status"),
                       objective_labels(input.opened.study).front(), "accuracy", "training",
                       report::words("parameters")});
  for (const auto* seen : trials)
    table.add({fmt::format("{}", seen->trial.number),
               std::string(status_name(seen->view.record.state)),
               fmt::format("{:.5g}", seen->view.values.front()),
               fmt::format("{:.4g}", seen->view.result->accuracy),
               report::duration_text(seen->view.result->training_s),
               report::escape_html(params_text(input.opened.study, seen->trial))});
  return report::folded(fmt::format("The best {} trials as a table", trials.size()), table.html());
}

}  // namespace

std::string study_page(const StudyPageInput& input) {
  const auto& study = input.opened.study;
  const auto* best = best_of(input);
  const StudyDrawing drawing{.study = study, .trials = input.sample.trials, .best = input.best};
  const auto importance = importance_of(study, input.sample.trials);
  std::string body = head(input, best);
  body += deploy_section(input, best);
  body += report::section("History", history_chart(drawing) + best_table(input));
  body += planes(input, drawing);
  body += report::section("Importance of parameters", importance_words(importance),
                          importance_table(study, importance));
  body += report::section("Parameters of all trials", parallel_coordinates(drawing, importance));
  body += report::section(
      "Rungs",
      "After each level, the better trials go on with a bigger budget; the others are "
      "stopped.",
      rungs_table(rungs_of(input.sample.trials)));
  body += report::section("Workers", worker_timeline(drawing));
  body += report::section("Failed trials", reasons_table(input, TrialState::failed));
  body += report::section("Stopped trials", reasons_table(input, TrialState::stopped));
  body += report::section("What it cost", costs_words(input), costs_table(input));
  return report::html_page(fmt::format("Study {}", input.opened.record.name), body);
}

}  // namespace fleetfit::study
