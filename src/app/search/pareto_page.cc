#include "fleetfit/app/searching.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "fleetfit/report/chart.h"
#include "fleetfit/report/html.h"

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
report::Chart chart_for(const Points& points, std::span<const Candidate> candidates,
                        std::optional<double> budget) {
  report::Extent cost;
  const double low = lowest_shown(candidates);
  double high = low;
  for (const auto& candidate : candidates) {
    cost.hold(candidate.costs[0]);
    high = std::max(high, candidate.accuracy);
  }
  if (budget) cost.hold(*budget);
  const auto margin = [](double a, double b) {
    return b > a ? kMargin * (b - a) : std::max(std::abs(a) * kMargin, kMargin);
  };
  const double x = margin(cost.low, cost.high);
  const double y = margin(low, high);
  const double begin =
      cost.low > 0 ? std::max(0.0, cost.low - x) : cost.low - x;  // no cost is negative
  report::Chart chart({label_of(points.costs[0]), begin, cost.high + x, report::AxisScale::linear},
                      {"accuracy", low - y, high + y, report::AxisScale::linear});
  if (budget) {
    const std::vector<report::ChartPoint> line = {{*budget, low - y}, {*budget, high + y}};
    chart.line(line, "roof-two", fmt::format("budget {:g}", *budget));
  }
  return chart;
}

void draw(report::Chart& chart, const Points& points, const Candidate& candidate,
          std::string_view style) {
  chart.point({candidate.costs[0], candidate.accuracy}, style, about(points, candidate),
              points.space.format(candidate.design));
}

std::string candidates_table(const Points& points, std::span<const Candidate> candidates,
                             std::string_view summary) {
  std::vector<report::Column> columns = {"design"};
  for (const auto& cost : points.costs) columns.emplace_back(label_of(cost));
  columns.emplace_back("accuracy");
  report::Table table(std::move(columns));
  for (const auto& candidate : candidates) {
    std::vector<std::string> cells = {report::escape_html(points.space.format(candidate.design))};
    for (const double cost : candidate.costs) cells.push_back(fmt::format("{:.4g}", cost));
    cells.push_back(fmt::format("{:.4g}", candidate.accuracy));
    table.add(cells);
  }
  return report::folded(summary, table.html());
}

std::string sources_list(const std::vector<SourceReport>& sources) {
  std::vector<std::string> items;
  for (const auto& source : sources)
    items.push_back(report::escape_html(fmt::format(
        "{}, {}: {}{}", label_of(source.quantity), source.is_measured ? "measured" : "predicted",
        source.about,
        source.rank_correlation ? fmt::format(", rank correlation {:.3f}", *source.rank_correlation)
                                : "")));
  return report::section("Where the numbers come from", report::list(items));
}

std::string page(std::string_view title, std::string_view summary, std::string_view rest) {
  return report::html_page(
      title, fmt::format("{}{}", report::paragraph(report::escape_html(summary)), rest));
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

std::string pareto_chart(const SearchReport& search, const Points& points) {
  auto shown = search.found.pareto;
  for (const auto* one : {&search.found.best, &search.found.nearest})
    if (*one) shown.push_back(**one);
  if (shown.empty()) return "<p>Nothing was found.</p>\n";
  auto chart = chart_for(points, shown, search.budgets[0]);
  std::vector<report::ChartPoint> line;
  for (const auto& candidate : search.found.pareto)
    line.push_back({candidate.costs[0], candidate.accuracy});
  // With more costs, the set is no line in this plane.
  if (points.costs.size() == 1) chart.steps(line, "line", "Pareto set");
  for (const auto& candidate : search.found.pareto) draw(chart, points, candidate, "hollow");
  for (const auto* one : {&search.found.best, &search.found.nearest})
    if (*one) draw(chart, points, **one, "filled");
  return report::wide(chart.svg()) + below_text(shown);
}

/// What the filled point is.
std::string_view best_text(const SearchReport& search) {
  const bool has_budget = std::ranges::any_of(
      search.budgets, [](const std::optional<double>& budget) { return budget.has_value(); });
  if (!has_budget) return "the most accurate";
  return search.found.best ? "the best within all budgets"
                           : "the nearest to the budgets, which none keeps";
}

}  // namespace

std::string pareto_page(const SearchReport& search) {
  const Points points{*search.space, search.costs};
  const auto title = fmt::format("Designs of {}", search.space->name());
  const auto summary = fmt::format(
      "{} designs that nothing beats in accuracy and cost, of {} that {} tried in {:.3g} s. The "
      "filled one is {}.",
      search.found.pareto.size(), search.found.evaluations, search.strategy, search.elapsed_s,
      best_text(search));
  return page(title, summary,
              pareto_chart(search, points) +
                  candidates_table(points, search.found.pareto, "The Pareto set as a table") +
                  sources_list(search.sources));
}

std::string bisection_page(const BisectReport& bisection) {
  const Points points{*bisection.space, bisection.costs};
  std::vector<Candidate> measured;
  for (const auto& step : bisection.result.steps)
    if (!std::isnan(step.measured.costs[0])) measured.push_back(step.measured);
  const auto title = fmt::format("{} on a device, by {} measurements", bisection.space->name(),
                                 bisection.result.measurements);
  const auto summary =
      bisection.result.best
          ? fmt::format("Best: {}. It is the filled one.", about(points, *bisection.result.best))
          : std::string("No design that was measured keeps the budget.");
  std::string chart_text;
  if (!measured.empty()) {
    auto chart = chart_for(points, measured, bisection.budgets[0]);
    for (const auto& candidate : measured) draw(chart, points, candidate, "hollow");
    if (bisection.result.best) draw(chart, points, *bisection.result.best, "filled");
    chart_text = report::wide(chart.svg()) + below_text(measured);
  }
  return page(title, summary,
              chart_text + candidates_table(points, measured, "All measurements, in order") +
                  sources_list(bisection.sources));
}

}  // namespace fleetfit::app
