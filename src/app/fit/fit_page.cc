#include "app/fit/fit_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "app/svg_chart.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kShownOpen = 8;  // devices whose charts are seen at once
constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::string_view unit_of(Quantity quantity) {
  if (quantity == Quantity::energy_mj) return "mJ";
  return quantity == Quantity::memory_mb ? "MB" : "ms";
}

std::string_view name_of(Quantity quantity) {
  if (quantity == Quantity::energy_mj) return "energy";
  return quantity == Quantity::memory_mb ? "memory" : "latency";
}

std::string amount(double value, Quantity quantity) {
  return fmt::format("{:.4g} {}", value, unit_of(quantity));
}

std::string percent(const FitReport& report, double accuracy) {
  return std::isnan(accuracy) ? "–" : fmt::format("{:.2f} %", report.accuracy_scale * accuracy);
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.1f} min", seconds / 60);
}

std::string fact(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escape_html(value));
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

std::string_view plural(std::size_t count) { return count == 1 ? "" : "s"; }

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
  std::string facts = fact("devices", fmt::format("{}", report.devices.size()));
  facts += fact("measurements", fmt::format("{}", account.measurements));
  if (account.alone_measurements > 0)
    facts += fact("of those that each alone would take",
                  fmt::format("{:.0f} %", 100.0 * static_cast<double>(account.measurements) /
                                              static_cast<double>(account.alone_measurements)));
  if (account.alone_seconds > 0)
    facts += fact("time, of what each alone would take",
                  fmt::format("{} ({:.0f} %)", duration(account.seconds),
                              100 * account.seconds / account.alone_seconds));
  if (report.share_within)
    facts += fact("models that serve all", fmt::format("{}", report.shared.size()));
  return fmt::format(
      "<h1>Fleet {}</h1>\n<p class=\"lead\">{}</p>\n<p>{}</p>\n<dl class=\"facts\">\n{}</dl>\n",
      escape_html(report.name), summary(report), escape_html(report.about), facts);
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
      return fmt::format("<span class=\"bad\">waits</span>: {}", escape_html(device.reason));
    case FitState::failed:
      break;
  }
  return fmt::format("<span class=\"bad\">failed</span>: {}", escape_html(device.reason));
}

std::string budget_words(const FitBudget& budget) {
  std::string text = std::isnan(budget.limit) ? "?" : amount(budget.limit, budget.quantity);
  if (budget.quantity == Quantity::latency_ms && budget.statistic != "median")
    text += fmt::format(" ({})", budget.statistic);
  if (budget.share) text += fmt::format(", {:.0f} % of the original", 100 * *budget.share);
  return text;
}

/// How much of its budget a cost uses, as a bar with a mark where the budget ends.
std::string use_of_budget(double cost, double limit) {
  const double share = cost / limit;
  if (!std::isfinite(share)) return "";
  return fmt::format(
      R"(<span class="gauge"><span class="{}" style="width:{:.1f}%"></span></span> {:.1f} %)",
      share <= 1 ? "fill" : "fill over", 100 * std::min(share, 1.25) / 1.25, 100 * share);
}

std::string cost_cells(const FittedDevice& device) {
  const auto* point = point_of(device);
  std::string budgets;
  std::string costs;
  std::string uses;
  for (std::size_t i = 0; i < device.budgets.size(); ++i) {
    const auto& budget = device.budgets[i];
    const std::string_view line = i == 0 ? "" : "<br>";
    budgets += fmt::format("{}{}", line, budget_words(budget));
    const double cost = point == nullptr ? kInfinite : cost_at(*point, i);
    costs += fmt::format("{}{}", line, std::isfinite(cost) ? amount(cost, budget.quantity) : "–");
    uses += fmt::format("{}{}", line, use_of_budget(cost, budget.limit));
  }
  return fmt::format(R"(<td>{}</td><td class="words">{}</td><td class="words">{}</td>)", costs,
                     uses, budgets);
}

std::string device_row(const FitReport& report, std::size_t number) {
  const auto& device = report.devices[number];
  const auto* point = point_of(device);
  return fmt::format(
      "<tr><td><a href=\"#device-{}\">{}</a></td><td class=\"words\">{}</td><td>{}</td>{}</tr>\n",
      number, escape_html(device.name), verdict(device),
      point == nullptr ? "–" : percent(report, point->accuracy), cost_cells(device));
}

std::string table(std::string_view head, std::string_view rows) {
  return wide(fmt::format("<table>\n<tr>{}</tr>\n{}</table>", head, rows));
}

std::string overview(const FitReport& report) {
  std::string rows;
  for (std::size_t i = 0; i < report.devices.size(); ++i) rows += device_row(report, i);
  std::string text =
      "<h2>What each device gets</h2>\n" +
      table(
          "<th>device</th><th class=\"words\">its budget</th><th>accuracy</th><th>cost</th>"
          "<th class=\"words\">of the budget</th><th class=\"words\">budget</th>",
          rows);
  for (const auto& reason : report.left_out)
    text += fmt::format("<p>Left out: {}</p>\n", escape_html(reason));
  return text;
}

// --- one device ---

struct Frame {
  double left = kInfinite;
  double right = -kInfinite;
  double low = kInfinite;
  double high = -kInfinite;

  void hold(double x, double y) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    left = std::min(left, x);
    right = std::max(right, x);
    low = std::min(low, y);
    high = std::max(high, y);
  }
};

/// The best, the pool, what was measured as a candidate, and the budget; what was measured to learn
/// may lie outside.
Frame frame_of(const FitReport& report, const FittedDevice& device) {
  Frame frame;
  const auto hold = [&](const FitPoint& point) {
    frame.hold(cost_at(point, 0), report.accuracy_scale * point.accuracy);
  };
  const double top = point_of(device)->accuracy;
  const auto near = [&](const FitPoint& point) {
    return report.accuracy_scale * (top - point.accuracy) < 6;
  };
  for (const auto& point : device.pool)
    if (near(point)) hold(point);
  for (const auto& point : device.tried)
    if (point.confirms && near(point)) hold(point);
  hold(*point_of(device));
  if (device.original) hold(*device.original);
  frame.hold(device.budgets[0].limit, report.accuracy_scale * top);
  const double x = std::max((frame.right - frame.left) * 0.06, frame.right * 0.01);
  const double y = std::max((frame.high - frame.low) * 0.08, 0.1);
  return {std::max(frame.left - x, 0.0), frame.right + x, frame.low - y, frame.high + y};
}

std::string about_point(const FitReport& report, const FittedDevice& device,
                        const FitPoint& point) {
  const auto quantity = device.budgets[0].quantity;
  std::string text = fmt::format("{}: {}, {}", point.design, amount(cost_at(point, 0), quantity),
                                 percent(report, point.accuracy));
  return text + (point.measured.empty() ? ", predicted" : ", measured");
}

std::string chart_of(const FitReport& report, const FittedDevice& device) {
  const auto& budget = device.budgets[0];
  if (point_of(device) == nullptr || !std::isfinite(cost_at(*point_of(device), 0))) return "";
  const auto frame = frame_of(report, device);
  Chart chart({fmt::format("{}, {}", name_of(budget.quantity), unit_of(budget.quantity)),
               frame.left, frame.right, AxisScale::linear},
              {"accuracy, %", frame.low, frame.high, AxisScale::linear}, {960, 380});
  const auto place = [&](const FitPoint& point) {
    return ChartPoint{cost_at(point, 0), report.accuracy_scale * point.accuracy};
  };
  const auto draw = [&](const FitPoint& point, std::string_view style) {
    if (std::isnan(point.accuracy)) return;
    chart.point(place(point), style, about_point(report, device, point), point.design);
  };
  const std::vector<ChartPoint> limit = {{budget.limit, frame.low}, {budget.limit, frame.high}};
  chart.line(limit, "roof-two", "budget " + budget_words(budget));
  std::vector<ChartPoint> curve;
  for (const auto& point : device.pool) curve.push_back(place(point));
  chart.steps(curve, "line", "the best for each cost");
  for (const auto& point : device.pool) draw(point, "hollow");
  for (const auto& point : device.tried) draw(point, point.confirms ? "filled" : "faint");
  const auto& best = *point_of(device);
  if (!best.expected.empty()) {
    const double y = report.accuracy_scale * best.accuracy;
    const std::vector<ChartPoint> range = {{best.expected[0].low, y}, {best.expected[0].high, y}};
    chart.line(range, "best-line", "where it was expected, nine times out of ten");
  }
  if (device.original) draw(*device.original, "before");
  draw(best, "star");
  return wide(chart.svg());
}

std::string expected_words(const FitPoint& point, std::size_t i, Quantity quantity) {
  if (i >= point.expected.size()) return "–";
  const auto& [value, low, high] = point.expected[i];
  if (!(high > low)) return amount(value, quantity);
  return fmt::format("{:.4g} ({:.4g} to {:.4g}) {}", value, low, high, unit_of(quantity));
}

std::string gets_words(const FitReport& report, const FittedDevice& device) {
  const auto& point = *point_of(device);
  const auto quantity = device.budgets[0].quantity;
  std::string text =
      fmt::format("<p>{} <code>{}</code>, {} accuracy", device.best ? "It gets" : "The nearest is",
                  escape_html(point.design), percent(report, point.accuracy));
  if (!point.measured.empty())
    text += fmt::format("; measured: {}", amount(point.measured[0], quantity));
  if (!point.expected.empty())
    text += fmt::format("; expected before: {}", expected_words(point, 0, quantity));
  text += ".";
  if (device.original)
    text +=
        fmt::format(" The original takes {} at {}.", amount(cost_at(*device.original, 0), quantity),
                    percent(report, device.original->accuracy));
  return text + "</p>\n";
}

std::string better_words(const FitReport& report, const FittedDevice& device) {
  if (device.better.empty() || !device.best) return "";
  std::string items;
  for (const auto& point : device.better) {
    const auto quantity = device.budgets[0].quantity;
    const auto cost = point.measured.empty() ? expected_words(point, 0, quantity)
                                             : amount(point.measured[0], quantity) + ", measured";
    items +=
        fmt::format("<li>{} (+{:.2f} points) would take {}</li>\n", percent(report, point.accuracy),
                    report.accuracy_scale * (point.accuracy - device.best->accuracy), cost);
  }
  return "<p>To do better, a larger budget:</p>\n<ul>\n" + items + "</ul>\n";
}

std::string files_words(const FittedDevice& device) {
  std::string links;
  for (const auto& file : device.files) {
    const auto path = file.generic_string();
    links += fmt::format("{}<a href=\"{}\">{}</a>", links.empty() ? "" : ", ", escape_html(path),
                         escape_html(path));
  }
  return links.empty() ? "" : fmt::format("<p>Files: {}</p>\n", links);
}

std::string measured_table(const FitReport& report, const FittedDevice& device) {
  std::string head = "<th>design</th><th class=\"words\">why</th>";
  for (const auto& budget : device.budgets)
    head += fmt::format("<th>measured, {}</th><th>expected (nine of ten within)</th>",
                        unit_of(budget.quantity));
  std::string rows;
  for (const auto& point : device.tried) {
    rows += fmt::format("<tr><td><code>{}</code></td><td class=\"words\">{}</td>",
                        escape_html(point.design), point.confirms ? "to confirm" : "to learn");
    for (std::size_t i = 0; i < device.budgets.size(); ++i)
      rows += fmt::format("<td>{:.4g}</td><td>{}</td>", point.measured[i],
                          expected_words(point, i, device.budgets[i].quantity));
    rows += fmt::format("<td>{}</td></tr>\n", percent(report, point.accuracy));
  }
  return fmt::format("<details><summary>All {} measurements, in order</summary>\n{}</details>\n",
                     device.tried.size(), table(head + "<th>accuracy</th>", rows));
}

std::string next_words(const FittedDevice& device) {
  if (device.measure_next.empty()) return "";
  std::string items;
  for (const auto& design : device.measure_next)
    items += fmt::format("<li><code>{}</code></li>\n", escape_html(design));
  return "<p>Measure these there, fill them into the table and run fit again:</p>\n<ul>\n" + items +
         "</ul>\n";
}

std::string device_section(const FitReport& report, std::size_t number) {
  const auto& device = report.devices[number];
  std::string content = next_words(device);
  if (point_of(device) != nullptr)
    content += gets_words(report, device) + chart_of(report, device) +
               better_words(report, device) + files_words(device);
  if (!device.tried.empty()) content += measured_table(report, device);
  return fmt::format(
      "<details class=\"device\" id=\"device-{}\"{}><summary><b>{}</b> – {}</summary>\n"
      "<p>{}</p>\n{}</details>\n",
      number, report.devices.size() <= kShownOpen ? " open" : "", escape_html(device.name),
      verdict(device), escape_html(device.about), content);
}

std::string legend(const FitReport& report) {
  const bool originals = std::ranges::any_of(
      report.devices, [](const FittedDevice& device) { return device.original.has_value(); });
  return "<ul class=\"legend\">\n" + line_in_legend("roof-two", "budget") +
         point_in_legend("star", "what it gets") +
         line_in_legend("best-line", "where that was expected") +
         point_in_legend("filled", "measured to confirm") +
         point_in_legend("faint", "measured to learn") +
         point_in_legend("hollow", "the best for each cost") +
         (originals ? point_in_legend("before", "the original") : "") + "</ul>\n";
}

std::string devices(const FitReport& report) {
  std::string text = "<h2>Device by device</h2>\n" + legend(report);
  for (std::size_t i = 0; i < report.devices.size(); ++i) text += device_section(report, i);
  return text;
}

// --- the whole fleet ---

std::string sharing(const FitReport& report) {
  if (!report.share_within) return "";
  std::string rows;
  for (const auto& model : report.shared) {
    std::string names;
    for (const auto& name : model.devices)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", escape_html(name));
    rows += fmt::format(
        "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>\n",
        escape_html(model.design), percent(report, model.accuracy), model.devices.size(), names);
  }
  return fmt::format(
      "<h2>The fewest models for the whole fleet</h2>\n<p>{} model{}: each device that keeps its "
      "budgets has one that does so, too, measured there, and is at most {:g} points less accurate "
      "than its own best. {} further measurement{} confirmed it.</p>\n{}",
      report.shared.size(), plural(report.shared.size()), *report.share_within,
      report.sharing_measurements, plural(report.sharing_measurements),
      table("<th>model</th><th>accuracy</th><th>devices</th><th class=\"words\"></th>", rows));
}

std::string account(const FitReport& report) {
  const auto& account = report.account;
  const auto row = [](std::string_view name, std::size_t measurements, double seconds) {
    return fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", name, measurements,
                       seconds > 0 ? duration(seconds) : "–");
  };
  std::string rows = row("all together", account.measurements, account.seconds);
  if (account.alone_measurements > 0)
    rows += row("each alone", account.alone_measurements, account.alone_seconds);
  return fmt::format("<h2>What it cost to find out</h2>\n{}{}",
                     table("<th></th><th>measurements on devices</th><th>time</th>", rows),
                     account.alone_means.empty() ? ""
                                                 : fmt::format("<p>Each alone: {}.</p>\n",
                                                               escape_html(account.alone_means)));
}

/// Devices that are not in the fleet yet can fit themselves.
std::string self_adaptation(const FitReport& report) {
  if (report.bundle.empty()) return "";
  const auto name = escape_html(report.bundle.filename().string());
  return fmt::format(
      "<h2>Further devices</h2>\n<p>The elastic model, {}, is all that a further device needs to "
      "fit itself:</p>\n<p><code>fleetfit adapt {} --data DATASET --budget-ms X -o pool.json"
      "</code></p>\n",
      name, name);
}

std::string sources(const FitReport& report) {
  return fmt::format(
      "<h2>Where the numbers come from</h2>\n<ul>\n<li>Costs that are called measured are those of "
      "the store: change one there, and this page changes when fit is run again.</li>\n"
      "<li>Costs that are called expected or predicted were worked out from the measurements to "
      "learn and from what the other devices teach; the range holds nine of ten "
      "measurements.</li>\n"
      "<li>Accuracy: {}.</li>\n</ul>\n",
      escape_html(report.accuracy_about));
}

}  // namespace

std::string fit_page(const FitReport& report) {
  return html_page(fmt::format("Fleet {}", report.name),
                   head(report) + overview(report) + sharing(report) + devices(report) +
                       account(report) + self_adaptation(report) + sources(report));
}

}  // namespace fleetfit::app
