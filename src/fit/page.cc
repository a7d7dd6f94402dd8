#include "fleetfit/fit/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fleetfit/report/chart.h"
#include "fleetfit/report/html.h"
#include "fleetfit/report/words.h"

namespace fleetfit::fit {
namespace {

constexpr std::size_t kShownOpen = 8;  // devices whose charts are seen at once
constexpr double kInfinite = std::numeric_limits<double>::infinity();

using space::Quantity;

std::string_view name_of(Quantity quantity) {
  if (quantity == Quantity::energy_mj) return "energy";
  return quantity == Quantity::memory_mb ? "memory" : "latency";
}

std::string amount(double value, Quantity quantity) {
  return fmt::format("{:.4g} {}", value, space::unit_of(quantity));
}

std::string percent(const FitReport& report, double accuracy) {
  return std::isnan(accuracy) ? "–" : fmt::format("{:.2f} %", report.accuracy_scale * accuracy);
}

const FitPoint* point_of(const FittedDevice& device) {
  if (device.best) return &*device.best;
  return device.nearest ? &*device.nearest : nullptr;
}

bool holds(const FittedDevice& device) {
  return device.state == FitState::fitted || device.state == FitState::predicted;
}

/// Measured if it was, else expected; NaN if nobody knows.
double cost_at(const FitPoint& point, std::size_t budget) {
  if (budget < point.measured.size()) return point.measured[budget];
  if (budget < point.expected.size()) return point.expected[budget].value;
  return std::numeric_limits<double>::quiet_NaN();
}

// --- head ---

std::string summary(const FitReport& report) {
  const auto all = report.devices.size();
  const auto good = static_cast<std::size_t>(std::ranges::count_if(report.devices, holds));
  const auto measured = static_cast<std::size_t>(
      std::ranges::count(report.devices, FitState::fitted, &FittedDevice::state));
  std::string text = all == 1 && good == 1 ? "The device keeps its budget"
                     : good == all         ? fmt::format("All {} devices keep their budgets", all)
                                   : fmt::format("{} of {} devices keep their budgets", good, all);
  if (measured == good)
    text += ", each confirmed by measuring the network that the device gets.";
  else
    text += fmt::format(", {} confirmed by measuring the network that the device gets.", measured);
  return text;
}

std::string head(const FitReport& report) {
  const auto& account = report.account;
  std::vector<report::Fact> facts = {{"devices", fmt::format("{}", report.devices.size())},
                                     {"measurements", fmt::format("{}", account.measurements)}};
  if (account.alone_measurements > 0)
    facts.push_back({"of those that each alone would take",
                     fmt::format("{:.0f} %", 100.0 * static_cast<double>(account.measurements) /
                                                 static_cast<double>(account.alone_measurements))});
  if (account.alone_seconds > 0)
    facts.push_back({"time, of what each alone would take",
                     fmt::format("{} ({:.0f} %)", report::duration_text(account.seconds),
                                 100 * account.seconds / account.alone_seconds)});
  if (report.share_within)
    facts.push_back({"models that serve all", fmt::format("{}", report.shared.size())});
  return fmt::format("<p class=\"lead\">{}</p>\n{}{}", summary(report),
                     report::paragraph(report::escape_html(report.about)), report::facts(facts));
}

// --- what each device gets ---

std::string verdict(const FittedDevice& device) {
  switch (device.state) {
    case FitState::fitted:
      return "<span class=\"good\">holds</span>, measured";
    case FitState::predicted:
      return "<span class=\"good\">holds</span>, predicted";
    case FitState::unreachable:
      return "<span class=\"bad\">cannot be kept</span>; the nearest is shown";
    case FitState::waiting:
      return fmt::format("<span class=\"bad\">waits</span>: {}",
                         report::escape_html(device.reason));
    case FitState::failed:
      break;
  }
  return fmt::format("<span class=\"bad\">failed</span>: {}", report::escape_html(device.reason));
}

std::string budget_words(const FitBudget& budget) {
  std::string text = std::isnan(budget.limit) ? "?" : amount(budget.limit, budget.quantity);
  if (budget.quantity == Quantity::latency_ms && budget.statistic != "median")
    text += fmt::format(" ({})", budget.statistic);
  if (budget.share) text += fmt::format(", {:.0f} % of the original", 100 * *budget.share);
  return text;
}

/// Cells for what its design costs, how much of the budgets that is, and the budgets.
std::vector<std::string> cost_cells(const FittedDevice& device) {
  const auto* point = point_of(device);
  std::vector<std::string> cells(3);
  for (std::size_t i = 0; i < device.budgets.size(); ++i) {
    const auto& budget = device.budgets[i];
    const double cost = point == nullptr ? kInfinite : cost_at(*point, i);
    if (i > 0)
      for (auto& cell : cells) cell += "<br>";
    cells[0] += std::isfinite(cost) ? amount(cost, budget.quantity) : "–";
    cells[1] += report::gauge(cost / budget.limit);
    cells[2] += budget_words(budget);
  }
  return cells;
}

std::string overview(const FitReport& report) {
  report::Table table({"device", report::words("its budget"), "accuracy", "cost",
                       report::words("of the budget"), report::words("budget")});
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const auto& device = report.devices[i];
    const auto* point = point_of(device);
    auto cells = cost_cells(device);
    cells.insert(
        cells.begin(),
        {fmt::format("<a href=\"#device-{}\">{}</a>", i, report::escape_html(device.name)),
         verdict(device), point == nullptr ? "–" : percent(report, point->reported_accuracy())});
    table.add(cells);
  }
  auto text = table.html();
  for (const auto& reason : report.left_out)
    text += report::paragraph("Left out: " + report::escape_html(reason));
  return report::section("What each device gets", text);
}

// --- one device ---

struct Frame {
  report::Extent cost;
  report::Extent accuracy;

  void hold(double x, double y) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    cost.hold(x);
    accuracy.hold(y);
  }
};

/// The best, the pool, what was measured as a candidate, and the budget; what was measured to learn
/// may lie outside.
Frame frame_of(const FitReport& report, const FittedDevice& device) {
  Frame frame;
  const auto hold = [&](const FitPoint& point) {
    frame.hold(cost_at(point, 0), report.accuracy_scale * point.reported_accuracy());
  };
  const double top = point_of(device)->reported_accuracy();
  const auto near = [&](const FitPoint& point) {
    return report.accuracy_scale * (top - point.reported_accuracy()) < 6;
  };
  for (const auto& point : device.pool)
    if (near(point)) hold(point);
  for (const auto& point : device.tried)
    if (point.confirms && near(point)) hold(point);
  hold(*point_of(device));
  if (device.original) hold(*device.original);
  frame.hold(device.budgets[0].limit, report.accuracy_scale * top);
  const auto& [cost, accuracy] = frame;
  const double x = std::max((cost.high - cost.low) * 0.06, cost.high * 0.01);
  const double y = std::max((accuracy.high - accuracy.low) * 0.08, 0.1);
  return {.cost = {std::max(cost.low - x, 0.0), cost.high + x},
          .accuracy = {accuracy.low - y, accuracy.high + y}};
}

std::string about_point(const FitReport& report, const FittedDevice& device,
                        const FitPoint& point) {
  const auto quantity = device.budgets[0].quantity;
  std::string text = fmt::format("{}: {}, {}", point.design, amount(cost_at(point, 0), quantity),
                                 percent(report, point.reported_accuracy()));
  return text + (point.measured.empty() ? ", predicted" : ", measured");
}

std::string chart_of(const FitReport& report, const FittedDevice& device) {
  const auto& budget = device.budgets[0];
  if (point_of(device) == nullptr || !std::isfinite(cost_at(*point_of(device), 0))) return "";
  const auto frame = frame_of(report, device);
  report::Chart chart(
      {fmt::format("{}, {}", name_of(budget.quantity), space::unit_of(budget.quantity)),
       frame.cost.low, frame.cost.high, report::AxisScale::linear},
      {"accuracy, %", frame.accuracy.low, frame.accuracy.high, report::AxisScale::linear},
      {960, 380});
  const auto place = [&](const FitPoint& point) {
    return report::ChartPoint{cost_at(point, 0), report.accuracy_scale * point.reported_accuracy()};
  };
  const auto draw = [&](const FitPoint& point, std::string_view style) {
    if (std::isnan(point.reported_accuracy())) return;
    chart.point(place(point), style, about_point(report, device, point), point.design);
  };
  const std::vector<report::ChartPoint> limit = {{budget.limit, frame.accuracy.low},
                                                 {budget.limit, frame.accuracy.high}};
  chart.line(limit, "roof-two", "budget " + budget_words(budget));
  std::vector<report::ChartPoint> curve;
  for (const auto& point : device.pool) curve.push_back(place(point));
  chart.steps(curve, "line", "the best for each cost");
  for (const auto& point : device.pool) draw(point, "hollow");
  for (const auto& point : device.tried) draw(point, point.confirms ? "filled" : "faint");
  const auto& best = *point_of(device);
  if (!best.expected.empty()) {
    const double y = report.accuracy_scale * best.reported_accuracy();
    const std::vector<report::ChartPoint> range = {{best.expected[0].low, y},
                                                   {best.expected[0].high, y}};
    chart.line(range, "best-line", "where it was expected, nine times out of ten");
  }
  if (device.original) draw(*device.original, "before");
  draw(best, "star");
  return report::wide(chart.svg());
}

std::string expected_words(const FitPoint& point, std::size_t i, Quantity quantity) {
  if (i >= point.expected.size()) return "–";
  const auto& [value, low, high] = point.expected[i];
  if (!(high > low)) return amount(value, quantity);
  return fmt::format("{:.4g} ({:.4g} to {:.4g}) {}", value, low, high, space::unit_of(quantity));
}

std::string gets_words(const FitReport& report, const FittedDevice& device) {
  const auto& point = *point_of(device);
  const auto quantity = device.budgets[0].quantity;
  std::string text =
      fmt::format("{} <code>{}</code>, {} accuracy", device.best ? "It gets" : "The nearest is",
                  report::escape_html(point.design), percent(report, point.reported_accuracy()));
  if (!point.measured.empty())
    text += fmt::format("; measured: {}", amount(point.measured[0], quantity));
  if (!point.expected.empty())
    text += fmt::format("; expected before: {}", expected_words(point, 0, quantity));
  text += ".";
  if (device.original)
    text +=
        fmt::format(" The original takes {} at {}.", amount(cost_at(*device.original, 0), quantity),
                    percent(report, device.original->reported_accuracy()));
  return report::paragraph(text);
}

std::string better_words(const FitReport& report, const FittedDevice& device) {
  if (device.better.empty() || !device.best) return "";
  std::vector<std::string> items;
  for (const auto& point : device.better) {
    const auto quantity = device.budgets[0].quantity;
    const auto cost = point.measured.empty() ? expected_words(point, 0, quantity)
                                             : amount(point.measured[0], quantity) + ", measured";
    items.push_back(fmt::format(
        "{} (+{:.2f} points) would take {}", percent(report, point.reported_accuracy()),
        report.accuracy_scale * (point.reported_accuracy() - device.best->reported_accuracy()),
        cost));
  }
  return report::paragraph("To do better, a larger budget:") + report::list(items);
}

std::string files_words(const FittedDevice& device) {
  std::string links;
  for (const auto& file : device.files)
    links += fmt::format("{0}<a href=\"{1}\">{1}</a>", links.empty() ? "" : ", ",
                         report::escape_html(file.generic_string()));
  return links.empty() ? "" : report::paragraph("Files: " + links);
}

std::string measured_table(const FitReport& report, const FittedDevice& device) {
  std::vector<report::Column> columns = {"design", report::words("why")};
  for (const auto& budget : device.budgets) {
    columns.emplace_back(fmt::format("measured, {}", space::unit_of(budget.quantity)));
    columns.emplace_back("expected (nine of ten within)");
  }
  columns.emplace_back("accuracy");
  report::Table table(std::move(columns));
  for (const auto& point : device.tried) {
    std::vector<std::string> cells = {
        fmt::format("<code>{}</code>", report::escape_html(point.design)),
        point.confirms ? "to confirm" : "to learn"};
    for (std::size_t i = 0; i < device.budgets.size(); ++i) {
      cells.push_back(fmt::format("{:.4g}", point.measured[i]));
      cells.push_back(expected_words(point, i, device.budgets[i].quantity));
    }
    cells.push_back(percent(report, point.reported_accuracy()));
    table.add(cells);
  }
  return report::folded(fmt::format("All {} measurements, in order", device.tried.size()),
                        table.html());
}

std::string next_words(const FittedDevice& device) {
  if (device.measure_next.empty()) return "";
  std::vector<std::string> items;
  for (const auto& design : device.measure_next)
    items.push_back(fmt::format("<code>{}</code>", report::escape_html(design)));
  return report::paragraph("Measure these there, fill them into the table and run fit again:") +
         report::list(items);
}

std::string device_section(const FitReport& report, std::size_t number) {
  const auto& device = report.devices[number];
  std::string content = next_words(device);
  if (point_of(device) != nullptr)
    content += gets_words(report, device) + chart_of(report, device) +
               better_words(report, device) + files_words(device);
  content += measured_table(report, device);
  return fmt::format(
      "<details class=\"device\" id=\"device-{}\"{}><summary><b>{}</b> – {}</summary>\n"
      "<p>{}</p>\n{}</details>\n",
      number, report.devices.size() <= kShownOpen ? " open" : "", report::escape_html(device.name),
      verdict(device), report::escape_html(device.about), content);
}

std::string legend_of(const FitReport& report) {
  const bool originals = std::ranges::any_of(
      report.devices, [](const FittedDevice& device) { return device.original.has_value(); });
  return report::legend({report::line_in_legend("roof-two", "budget"),
                         report::point_in_legend("star", "what it gets"),
                         report::line_in_legend("best-line", "where that was expected"),
                         report::point_in_legend("filled", "measured to confirm"),
                         report::point_in_legend("faint", "measured to learn"),
                         report::point_in_legend("hollow", "the best for each cost"),
                         originals ? report::point_in_legend("before", "the original") : ""});
}

std::string devices(const FitReport& report) {
  auto text = legend_of(report);
  for (std::size_t i = 0; i < report.devices.size(); ++i) text += device_section(report, i);
  return report::section("Device by device", text);
}

// --- the whole fleet ---

std::string sharing(const FitReport& report) {
  if (!report.share_within) return "";
  report::Table table({"model", "accuracy", "devices", report::words("")});
  for (const auto& model : report.shared) {
    std::string names;
    for (const auto& name : model.devices)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", report::escape_html(name));
    table.add({fmt::format("<code>{}</code>", report::escape_html(model.design)),
               percent(report, model.reported_accuracy()), fmt::format("{}", model.devices.size()),
               names});
  }
  const auto about = fmt::format(
      "{}: each device that keeps its budgets has one that does so, too, measured there, and is at "
      "most {:g} points less accurate than its own best. {} confirmed it.",
      report::counted(report.shared.size(), "model"), *report.share_within,
      report::counted(report.sharing_measurements, "further measurement"));
  return report::section("The fewest models for the whole fleet",
                         report::paragraph(about) + table.html());
}

std::string account_of(const FitReport& report) {
  const auto& account = report.account;
  report::Table table({"", "measurements on devices", "time"});
  const auto add = [&table](const char* name, std::size_t measurements, double seconds) {
    table.add({name, fmt::format("{}", measurements),
               seconds > 0 ? report::duration_text(seconds) : "–"});
  };
  add("all together", account.measurements, account.seconds);
  if (account.alone_measurements > 0)
    add("each alone", account.alone_measurements, account.alone_seconds);
  auto text = table.html();
  if (!account.alone_means.empty())
    text +=
        report::paragraph(fmt::format("Each alone: {}.", report::escape_html(account.alone_means)));
  return report::section("What it cost to find out", text);
}

/// Devices that are not in the fleet yet can fit themselves.
std::string self_adaptation(const FitReport& report) {
  if (report.bundle.empty()) return "";
  const auto name = report::escape_html(report.bundle.filename().string());
  return report::section(
      "Further devices",
      fmt::format("The elastic model, {}, is all that a further device needs to fit itself:", name),
      report::paragraph(fmt::format(
          "<code>fleetfit adapt {} --data DATASET --budget-ms X -o pool.json</code>", name)));
}

std::string sources(const FitReport& report) {
  const std::vector<std::string> items = {
      "Costs that are called measured are those of the store: change one there, and this page "
      "changes when fit is run again.",
      "Costs that are called expected or predicted were worked out from the measurements to learn "
      "and from what is known of the other devices; the range holds nine of ten measurements.",
      fmt::format("Accuracy: {}.", report::escape_html(report.accuracy_about))};
  return report::section("Where the numbers come from", report::list(items));
}

}  // namespace

std::string fit_page(const FitReport& report) {
  return report::html_page(fmt::format("Fleet {}", report.name),
                           head(report) + overview(report) + sharing(report) + devices(report) +
                               account_of(report) + self_adaptation(report) + sources(report));
}

}  // namespace fleetfit::fit
