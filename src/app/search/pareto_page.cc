#include "app/search/pareto_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "app/svg_chart.h"

namespace fleetfit::app {
namespace {

using search::Candidate;

constexpr double kMargin = 0.05;

/// What both kinds of page know of their points.
struct Points {
  const space::Space& space;
  const std::vector<std::string>& costs;
};

/// "latency_ms" taken apart; a name without unit has "".
std::pair<std::string_view, std::string_view> name_and_unit(std::string_view name) {
  const auto bar = name.rfind('_');
  if (bar == std::string_view::npos) return {name, ""};
  return {name.substr(0, bar), name.substr(bar + 1)};
}

/// As people read it: "latency, ms".
std::string label_of(std::string_view full_name) {
  const auto [name, unit] = name_and_unit(full_name);
  return unit.empty() ? std::string(name) : fmt::format("{}, {}", name, unit);
}

std::string about(const Points& points, const Candidate& candidate) {
  auto text =
      fmt::format("{}: accuracy {:.4g}", points.space.format(candidate.design), candidate.accuracy);
  for (std::size_t i = 0; i < points.costs.size(); ++i) {
    const auto [name, unit] = name_and_unit(points.costs[i]);
    text += fmt::format(", {} {:.4g} {}", name, candidate.costs[i], unit);
  }
  return text;
}

/// Where the axis of accuracies begins: at the least, unless few points far below all others would
/// press those together. They are then cut off, and stand in the table.
double lowest_shown(std::span<const Candidate> candidates) {
  std::vector<double> accuracies;
  for (const auto& candidate : candidates) accuracies.push_back(candidate.accuracy);
  std::ranges::sort(accuracies);
  const double tenth = accuracies[accuracies.size() / 10];
  const double high = accuracies.back();
  return high - accuracies.front() > 4 * (high - tenth) && high > tenth ? tenth
                                                                        : accuracies.front();
}

/// Axes that hold these points and a place for the budget.
Chart chart_for(const Points& points, std::span<const Candidate> candidates,
                std::optional<double> budget) {
  double left = candidates[0].costs[0];
  double right = left;
  const double low = lowest_shown(candidates);
  double high = low;
  for (const auto& candidate : candidates) {
    left = std::min(left, candidate.costs[0]);
    right = std::max(right, candidate.costs[0]);
    high = std::max(high, candidate.accuracy);
  }
  if (budget) {
    left = std::min(left, *budget);
    right = std::max(right, *budget);
  }
  const auto margin = [](double a, double b) {
    return b > a ? kMargin * (b - a) : std::max(std::abs(a) * kMargin, kMargin);
  };
  const double x = margin(left, right);
  const double y = margin(low, high);
  const double begin = left > 0 ? std::max(0.0, left - x) : left - x;  // no cost is negative
  Chart chart({label_of(points.costs[0]), begin, right + x, AxisScale::linear},
              {"accuracy", low - y, high + y, AxisScale::linear});
  if (budget) {
    const std::vector<ChartPoint> line = {{*budget, low - y}, {*budget, high + y}};
    chart.line(line, "roof-two", fmt::format("budget {:g}", *budget));
  }
  return chart;
}

void draw(Chart& chart, const Points& points, const Candidate& candidate, std::string_view style) {
  chart.point({candidate.costs[0], candidate.accuracy}, style, about(points, candidate),
              points.space.format(candidate.design));
}

/// Rows of cells; the first cell of each is the design.
std::string table(const Points& points, std::span<const Candidate> candidates,
                  std::string_view summary) {
  std::string head = "<tr><th>design</th>";
  for (const auto& cost : points.costs)
    head += fmt::format("<th>{}</th>", escape_html(label_of(cost)));
  std::string rows;
  for (const auto& candidate : candidates) {
    rows += fmt::format("<tr><td>{}</td>", escape_html(points.space.format(candidate.design)));
    for (const double cost : candidate.costs) rows += fmt::format("<td>{:.4g}</td>", cost);
    rows += fmt::format("<td>{:.4g}</td></tr>\n", candidate.accuracy);
  }
  return fmt::format(
      "<details><summary>{}</summary>\n{}</details>\n", summary,
      wide(fmt::format("<table>\n{}<th>accuracy</th></tr>\n{}</table>", head, rows)));
}

std::string sources_list(const std::vector<SourceReport>& sources) {
  std::string items;
  for (const auto& source : sources) {
    items += fmt::format("<li>{}, {}: {}{}</li>\n", escape_html(label_of(source.quantity)),
                         source.is_measured ? "measured" : "predicted", escape_html(source.about),
                         source.rank_correlation
                             ? fmt::format(", rank correlation {:.3f}", *source.rank_correlation)
                             : "");
  }
  return "<h2>Where the numbers come from</h2>\n<ul>\n" + items + "</ul>\n";
}

std::string page(std::string_view title, std::string_view summary, std::string_view rest) {
  return html_page(title, fmt::format("<h1>{}</h1>\n<p>{}</p>\n{}", escape_html(title),
                                      escape_html(summary), rest));
}

/// How many points the frame leaves out.
std::string below_text(std::span<const Candidate> candidates) {
  const double low = lowest_shown(candidates);
  const auto below = std::ranges::count_if(
      candidates, [low](const Candidate& candidate) { return candidate.accuracy < low; });
  if (below == 0) return "";
  return fmt::format("<p>{} less accurate design{} the frame; the table has {}.</p>\n", below,
                     below == 1 ? " lies below" : "s lie below", below == 1 ? "it" : "them");
}

std::string pareto_chart(const SearchReport& report, const Points& points) {
  auto shown = report.found.pareto;
  for (const auto* one : {&report.found.best, &report.found.nearest})
    if (*one) shown.push_back(**one);
  if (shown.empty()) return "<p>Nothing was found.</p>\n";
  auto chart = chart_for(points, shown, report.budgets[0]);
  std::vector<ChartPoint> line;
  for (const auto& candidate : report.found.pareto)
    line.push_back({candidate.costs[0], candidate.accuracy});
  // With more costs, the set is no line in this plane.
  if (points.costs.size() == 1) chart.steps(line, "line", "Pareto set");
  for (const auto& candidate : report.found.pareto) draw(chart, points, candidate, "hollow");
  for (const auto* one : {&report.found.best, &report.found.nearest})
    if (*one) draw(chart, points, **one, "filled");
  return wide(chart.svg()) + below_text(shown);
}

/// What the filled point is.
std::string_view best_text(const SearchReport& report) {
  const bool has_budget = std::ranges::any_of(
      report.budgets, [](const std::optional<double>& budget) { return budget.has_value(); });
  if (!has_budget) return "the most accurate";
  return report.found.best ? "the best within all budgets"
                           : "the nearest to the budgets, which none keeps";
}

}  // namespace

std::string pareto_page(const SearchReport& report) {
  const Points points{*report.space, report.costs};
  const auto title = fmt::format("Designs of {}", report.space->name());
  const auto summary = fmt::format(
      "{} designs that nothing beats in accuracy and cost, of {} that {} tried in {:.3g} s. The "
      "filled one is {}.",
      report.found.pareto.size(), report.found.evaluations, report.strategy, report.elapsed_s,
      best_text(report));
  return page(title, summary,
              pareto_chart(report, points) +
                  table(points, report.found.pareto, "The Pareto set as a table") +
                  sources_list(report.sources));
}

std::string bisection_page(const BisectReport& report) {
  const Points points{*report.space, report.costs};
  std::vector<Candidate> measured;
  for (const auto& step : report.result.steps)
    if (!std::isnan(step.measured.costs[0])) measured.push_back(step.measured);
  const auto title = fmt::format("{} on a device, by {} measurements", report.space->name(),
                                 report.result.measurements);
  const auto summary =
      report.result.best
          ? fmt::format("Best: {}. It is the filled one.", about(points, *report.result.best))
          : std::string("No design that was measured keeps the budget.");
  std::string chart_text;
  if (!measured.empty()) {
    auto chart = chart_for(points, measured, report.budgets[0]);
    for (const auto& candidate : measured) draw(chart, points, candidate, "hollow");
    if (report.result.best) draw(chart, points, *report.result.best, "filled");
    chart_text = wide(chart.svg()) + below_text(measured);
  }
  return page(title, summary,
              chart_text + table(points, measured, "All measurements, in order") +
                  sources_list(report.sources));
}

}  // namespace fleetfit::app
