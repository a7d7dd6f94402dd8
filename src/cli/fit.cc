#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/fitting.h"

namespace fleetfit::cli {
namespace {

std::string budget_text(const fit::FittedDevice& device) {
  std::string text;
  for (const auto& budget : device.budgets) {
    if (!text.empty()) text += ", ";
    text += std::isnan(budget.limit) ? "?" : fmt::format("{:.4g}", budget.limit);
    text += fmt::format(" {}", space::unit_of(budget.quantity));
    if (budget.statistic != "median" && budget.quantity == space::Quantity::latency_ms)
      text += fmt::format(" ({})", budget.statistic);
    if (budget.share) text += fmt::format(", {:.0f} %", 100 * *budget.share);
  }
  return text;
}

std::string cost_text(const fit::FitPoint& point) {
  std::string text;
  const std::size_t costs = std::max(point.measured.size(), point.expected.size());
  for (std::size_t i = 0; i < costs; ++i) {
    const bool measured = i < point.measured.size();
    text += fmt::format("{}{:.4g}", text.empty() ? "" : ", ",
                        measured ? point.measured[i] : point.expected[i].value);
  }
  return text;
}

std::string verdict_of(const fit::FittedDevice& device) {
  switch (device.state) {
    case fit::FitState::fitted:
      return "holds, measured";
    case fit::FitState::predicted:
      return "holds, predicted";
    case fit::FitState::unreachable:
      return "cannot be kept; this is the nearest";
    case fit::FitState::waiting:
      return "waits: " + device.reason;
    case fit::FitState::failed:
      break;
  }
  return "failed: " + device.reason;
}

std::string devices_text(const fit::FitReport& report) {
  TextTable table("device | budget | design | cost {} | accuracy {} | measured {} | ");
  for (const auto& device : report.devices) {
    const auto& point = device.best ? device.best : device.nearest;
    table.add(
        device.name, budget_text(device), point ? point->design : "",
        point ? cost_text(*point) : "",
        point ? fmt::format("{:.2f}", report.accuracy_scale * point->reported_accuracy()) : "",
        device.tried.size(), verdict_of(device));
  }
  return table.text();
}

std::string shared_text(const fit::FitReport& report) {
  if (!report.share_within) return "";
  std::string text =
      fmt::format("\n{} model{} serve{} all devices within {:g} points of their own best\n",
                  report.shared.size(), report.shared.size() == 1 ? "" : "s",
                  report.shared.size() == 1 ? "s" : "", *report.share_within);
  TextTable table("design | accuracy {:.2f} | devices");
  for (const auto& model : report.shared)
    table.add(model.design, report.accuracy_scale * model.reported_accuracy(),
              fmt::format("{}", fmt::join(model.devices, ", ")));
  return text + table.text();
}

std::string waiting_text(const fit::FitReport& report) {
  std::string text;
  for (const auto& device : report.devices)
    if (!device.measure_next.empty())
      text += fmt::format("measure on {}: {}\n", device.name, fmt::join(device.measure_next, " "));
  return text;
}

std::string report_text(const fit::FitReport& report) {
  std::string text = devices_text(report) + waiting_text(report) + shared_text(report);
  for (const auto& reason : report.left_out) text += fmt::format("left out: {}\n", reason);
  const auto& account = report.account;
  text += fmt::format("\n{} measurements", account.measurements);
  if (account.seconds > 0) text += fmt::format(", {:.0f} s", account.seconds);
  if (account.alone_measurements > 0)
    text += fmt::format(
        "; fitting each device alone: {}{}", account.alone_measurements,
        account.alone_seconds > 0 ? fmt::format(", {:.0f} s", account.alone_seconds) : "");
  return text + fmt::format("\nreport: {}\n", report.page.string());
}

Result<Verdict> run_fit(Context& context, app::FitRequest& request, const std::stop_token& stop) {
  request.seed = context.flags.seed;
  request.threads = context.threads();
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  FLEETFIT_ASSIGN(const auto report, app::fit_fleet(workplace, request, context.progress(), stop));
  context.show(report, report_text(report));
  std::vector<std::string> without;
  for (const auto& device : report.devices)
    if (device.state != fit::FitState::fitted && device.state != fit::FitState::predicted)
      without.push_back(fmt::format("{} ({})", device.name, to_string(device.state)));
  return done_if(without.empty(), fmt::format("no network for {}", fmt::join(without, ", ")));
}

}  // namespace

void add_fit(CLI::App& program, Context& context) {
  auto [verb, request] = add_verb<app::FitRequest>(
      program, "fit",
      "The whole way: from a model and devices with budgets to a fitted model for each");
  verb->add_option("FLEET", request->fleet, "The fleet file (YAML)")->required();
  verb->add_option("-o,--output", request->output,
                   "The folder to write; work that is in it already is not done again")
      ->required()
      ->type_name("DIR");
  verb->add_option("--share-within", request->share_within,
                   "Also the fewest models that serve all devices, each within so many points of "
                   "accuracy of its own best")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("POINTS");
  verb->footer(
      "The exit status is 1 if a device cannot keep its budgets; the nearest is told.\n"
      "A run that was stopped or killed goes on when it is started again.\n\n"
      "Example:\n  fleetfit fit examples/fleets/fashion.yaml -o fitted/");
  context.on(verb, request, run_fit);
}

}  // namespace fleetfit::cli
