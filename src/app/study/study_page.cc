#include "app/study/study_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "app/dates.h"
#include "app/study/study_charts.h"
#include "app/study/study_importance.h"
#include "app/svg_chart.h"

namespace fleetfit::app {
namespace {

using store::TrialState;

constexpr std::size_t kMostRows = 50;

std::string section(std::string_view title, std::string_view words, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<h2>{}</h2>\n{}{}", title,
                     words.empty() ? "" : fmt::format("<p>{}</p>\n", words), content);
}

std::string table(std::string_view head, std::string_view rows) {
  return wide(fmt::format("<table>\n<tr>{}</tr>\n{}</table>", head, rows));
}

std::string fact(std::string_view name, std::string_view value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escape_html(value));
}

std::string meter(double share, std::string_view style = "") {
  return fmt::format(R"(<span class="meter {}" style="width:{:.2f}em"></span>)", style,
                     10 * std::clamp(share, 0.0, 1.0));
}

std::string budget_text(const tune::Budget& budget) {
  return fmt::format("{} epoch{}, {:.3g} % of the data", budget.epochs,
                     budget.epochs == 1 ? "" : "s", 100 * budget.data_fraction);
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
  std::string facts;
  if (best != nullptr && best->view.result) {
    if (best->view.result->accuracy > 0)  // told studies may have none
      facts += fact("best accuracy", fmt::format("{:.4g}", best->view.result->accuracy));
    const auto labels = objective_labels(input.opened.study);
    for (std::size_t i = 0; i < best->view.values.size(); ++i)
      if (labels[i] != "accuracy")
        facts += fact(escape_html(labels[i]), fmt::format("{:.4g}", best->view.values[i]));
  }
  facts += fact("trials", fmt::format("{}", input.sample.counts.all()));
  if (record.tuning_s > 0) facts += fact("time of tuning", duration_text(record.tuning_s));
  if (record.tuning_j) facts += fact("energy of training", energy_text(*record.tuning_j));
  if (input.opened.study.inference)
    facts += fact("inference tunings", fmt::format("{}", input.tunings.size()));
  return fmt::format(
      "<h1>Study {}</h1>\n<p>{}{} Begun {}; {}.</p>\n<dl class=\"facts\">\n{}</dl>\n",
      escape_html(record.name), counts_text(input.sample.counts), sample_text(input.sample),
      date_text(record.created), record.done ? "done" : "not done yet", facts);
}

// --- what to deploy ---

std::string setting_cell(const std::optional<std::int64_t>& value) {
  return value ? fmt::format("{}", *value) : "–";
}

std::string source_text(const tune::InferenceTrial& trial) {
  std::string text = trial.cost->predicted ? "predicted" : "measured";
  if (trial.response.saturated) text += "; more arrives than is answered";
  if (!trial.cost->note.empty()) text += "; " + trial.cost->note;
  return escape_html(text);
}

std::string deployment_row(const Deployment& deployment) {
  const auto& setting = deployment.setting.setting;
  const auto& cost = deployment.setting.cost;
  const auto& response = deployment.setting.response;
  const auto energy = response.energy_mj ? fmt::format("{:.3g}", *response.energy_mj) : "–";
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.4g}{}</td><td>{:.4g}</td>"
      "<td>{:.4g}</td><td>{:.4g}</td><td>{:.4g}</td><td>{}</td><td class=\"words\">{}</td></tr>\n",
      escape_html(deployment.device), setting.batch, setting_cell(setting.cores),
      setting_cell(setting.threads), setting.precision ? escape_html(*setting.precision) : "–",
      cost->cost.latency_ms, cost->spread_ms > 0 ? fmt::format(" ± {:.2g}", cost->spread_ms) : "",
      response.mean_ms, response.p95_ms, response.p99_ms, response.throughput,
      cost->energy_source.empty() ? energy : fmt::format("{} ({})", energy, cost->energy_source),
      source_text(deployment.setting));
}

std::string deployments(const Candidate& candidate) {
  std::string rows;
  for (const auto& deployment : candidate.deployments) rows += deployment_row(deployment);
  std::string text;
  if (!rows.empty())
    text = table(
        "<th>device</th><th>batch</th><th>cores</th><th>threads</th><th>precision</th>"
        "<th>latency of a batch, ms</th><th>mean response, ms</th><th>p95</th><th>p99</th>"
        "<th>samples/s</th><th>mJ per sample</th><th class=\"words\"></th>",
        rows);
  for (const auto& problem : candidate.undeployable)
    text += fmt::format("<p>Cannot be run on {}.</p>\n", escape_html(problem));
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

std::string params_rows(const SeenTrial& seen) {
  std::string rows;
  const auto groups = nlohmann::ordered_json::parse(seen.view.params_by_group, nullptr, false);
  for (const auto& [group, values] : groups.items())
    for (const auto& [name, value] : values.items())
      rows += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>\n",
                          escape_html(name), escape_html(param_text(value)), group);
  return rows;
}

std::string deploy_section(const StudyPageInput& input, const SeenTrial* best) {
  if (best == nullptr)
    return section("What to deploy", "",
                   "<p>No trial keeps all limits of the study, or none has a result yet.</p>\n");
  const auto& study = input.opened.study;
  const auto candidate = candidate_of(input.opened, *best);
  std::string words = fmt::format("Trial {}", best->trial.number);
  if (best->view.budget) words += ", trained with " + budget_text(*best->view.budget);
  if (!best->view.record.model_file.empty())
    words += fmt::format("; its network is {}", escape_html(best->view.record.model_file));
  words += ".";
  if (study.objective.count() > 1)
    words += " Of the Pareto set below, it is nearest to the best of all objectives.";
  if (study.inference)
    words += fmt::format(" Requests: {}.", scenario_text(study.inference->scenario));
  return section("What to deploy", words,
                 deployments(candidate) +
                     table("<th>parameter</th><th>value</th><th class=\"words\">group</th>",
                           params_rows(*best)));
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
  std::string head = "<th>trial</th>";
  for (const auto& label : objective_labels(input.opened.study))
    head += fmt::format("<th>{}</th>", escape_html(label));
  std::string rows;
  for (const auto* seen : std::span(set).first(std::min(set.size(), kMostRows))) {
    rows += fmt::format("<tr><td>{}</td>", seen->trial.number);
    for (const double value : seen->view.values) rows += fmt::format("<td>{:.4g}</td>", value);
    rows += fmt::format("<td class=\"words\">{}</td></tr>\n",
                        escape_html(params_text(input.opened.study, seen->trial)));
  }
  return fmt::format("<details><summary>The Pareto set as a table: {}</summary>\n{}</details>\n",
                     set.size() > kMostRows
                         ? fmt::format("the first {} of {} trials", kMostRows, set.size())
                         : fmt::format("{} trials", set.size()),
                     table(head + "<th class=\"words\">parameters</th>", rows));
}

std::string planes(const StudyPageInput& input, const StudyDrawing& drawing) {
  const auto& study = input.opened.study;
  if (study.objective.count() > 1) {
    const auto chart = plane_chart(drawing, objective_plane(input));
    if (chart.empty()) return "";
    return section("Pareto set", study.objective.count() > 2 ? "The first two objectives." : "",
                   chart + pareto_table(input));
  }
  std::string charts;
  for (std::size_t i = 0; study.inference && i < study.inference->devices.size(); ++i)
    charts += plane_chart(drawing, latency_plane(input, i));
  return section("Accuracy against latency", "", charts);
}

// --- parameters ---

std::string importance_table(const tune::Study& study, const ImportanceReport& report) {
  std::string rows;
  for (const auto& one : report.parameters) {
    const auto& parameter = study.parameters.all()[one.parameter];
    rows += fmt::format(
        "<tr><td>{}</td><td class=\"words\">{}</td><td>{:.0f} %</td><td class=\"words\">{}</td>"
        "<td class=\"words\">{}</td></tr>\n",
        escape_html(parameter.name), tune::to_string(parameter.group), 100 * one.share,
        meter(one.share), escape_html(one.best_at.empty() ? "too few trials" : one.best_at));
  }
  if (rows.empty()) return "";
  return table(
      "<th>parameter</th><th class=\"words\">group</th><th>explains</th><th></th>"
      "<th class=\"words\">best where it is</th>",
      rows);
}

std::string importance_words(const ImportanceReport& report) {
  return fmt::format(
      "How much of the order of trials, from best to worst, each parameter explains by itself: {} "
      "trials are put into groups by its value, and the spread between the groups is compared with "
      "that of all; what chance would give is taken off. What parameters do together is not seen "
      "here, and trials are not spread evenly, as the tuner looks where it is good. All were "
      "compared after {}.",
      report.trials, budget_text(report.budget));
}

// --- rungs ---

std::string rungs_table(std::span<const RungView> rungs) {
  if (rungs.size() < 2) return "";
  std::int64_t most = 1;
  for (const auto& rung : rungs) most = std::max(most, rung.ended);
  std::string rows;
  for (const auto& rung : rungs) {
    const auto share = [most](std::int64_t count) {
      return static_cast<double>(count) / static_cast<double>(most);
    };
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"words\">{}</td><td>{}</td><td>{}</td><td>{:.4g}</td>"
        "<td class=\"words\">{}{}</td></tr>\n",
        rung.bracket, rung.level, budget_text(rung.budget), rung.ended, rung.promoted,
        rung.best_accuracy, meter(share(rung.promoted), "two"),
        meter(share(rung.ended - rung.promoted)));
  }
  return table(
      "<th>bracket</th><th>level</th><th class=\"words\">budget</th><th>ended</th>"
      "<th>went on</th><th>best accuracy</th><th class=\"words\">went on, and did not</th>",
      rows);
}

// --- failures and costs ---

struct Reason {
  std::string words;  ///< what all of them have in common
  std::int64_t count = 0;
  std::vector<std::int64_t> examples;
};

/// Trials with one reason, most frequent first. Numbers in reasons differ from trial to trial, so
/// that what stands before the first digit tells them apart.
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
  std::string rows;
  for (const auto& [key, reason] : list) {
    std::string examples;
    for (const auto number : reason.examples)
      examples += fmt::format("{}{}", examples.empty() ? "" : ", ", number);
    if (static_cast<std::size_t>(reason.count) > reason.examples.size()) examples += ", …";
    rows +=
        fmt::format("<tr><td>{}</td><td class=\"words\">{}</td><td class=\"words\">{}</td></tr>\n",
                    reason.count, examples, escape_html(reason.words));
  }
  if (rows.empty()) return "";
  return table(R"(<th>trials</th><th class="words">which</th><th class="words">reason</th>)", rows);
}

struct Cost {
  std::int64_t trials = 0;
  double seconds = 0;
  double joules = 0;
  bool joules_known = true;
};

std::string cost_row(std::string_view name, const Cost& cost, double all) {
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>\n", name,
      cost.trials, duration_text(cost.seconds),
      cost.joules_known && cost.joules > 0 ? energy_text(cost.joules) : "–",
      meter(all > 0 ? cost.seconds / all : 0));
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
  std::string rows;
  for (const auto* name : {"finished", "stopped", "failed", "running", "waiting"})
    if (costs.contains(name)) rows += cost_row(fmt::format("trials: {}", name), costs[name], all);
  if (!input.tunings.empty()) {
    Cost cost{.trials = static_cast<std::int64_t>(input.tunings.size()), .joules_known = false};
    for (const auto& tuning : input.tunings) cost.seconds += tuning.elapsed_s;
    rows += cost_row("inference tunings", cost, all);
  }
  if (rows.empty()) return "";
  return table("<th></th><th>number</th><th>time</th><th>energy</th><th></th>", rows);
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
  std::string rows;
  for (const auto* seen : trials) {
    rows += fmt::format(
        "<tr><td>{}</td><td class=\"words\">{}</td><td>{:.5g}</td><td>{:.4g}</td><td>{}</td>"
        "<td class=\"words\">{}</td></tr>\n",
        seen->trial.number, status_name(seen->view.record.state), seen->view.values.front(),
        seen->view.result->accuracy, duration_text(seen->view.result->training_s),
        escape_html(params_text(input.opened.study, seen->trial)));
  }
  if (rows.empty()) return "";
  return fmt::format(
      "<details><summary>The best {} trials as a table</summary>\n{}</details>\n", trials.size(),
      table(fmt::format("<th>trial</th><th class=\"words\">status</th><th>{}</th><th>accuracy</th>"
                        "<th>training</th><th class=\"words\">parameters</th>",
                        escape_html(objective_labels(input.opened.study).front())),
            rows));
}

}  // namespace

std::string study_page(const StudyPageInput& input) {
  const auto& study = input.opened.study;
  const auto* best = best_of(input);
  const StudyDrawing drawing{.study = study, .trials = input.sample.trials, .best = input.best};
  const auto importance = importance_of(study, input.sample.trials);
  std::string body = head(input, best);
  body += deploy_section(input, best);
  body += section("History", "", history_chart(drawing) + best_table(input));
  body += planes(input, drawing);
  body += section("Importance of parameters", importance_words(importance),
                  importance_table(study, importance));
  body += section("Parameters of all trials", "", parallel_coordinates(drawing, importance));
  body += section("Rungs",
                  "After each level, the better trials go on with a bigger budget; the others are "
                  "stopped.",
                  rungs_table(rungs_of(input.sample.trials)));
  body += section("Workers", "", worker_timeline(drawing));
  body += section("Failed trials", "", reasons_table(input, TrialState::failed));
  body += section("Stopped trials", "", reasons_table(input, TrialState::stopped));
  body += section("What it cost", costs_words(input), costs_table(input));
  return html_page(fmt::format("Study {}", input.opened.record.name), body);
}

}  // namespace fleetfit::app
