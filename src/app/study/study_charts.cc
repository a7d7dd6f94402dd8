#include "app/study/study_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "app/svg_chart.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/search/pareto.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kMostPoints = 2'000;
constexpr ChartSize kSize{.width = 960, .height = 400};

std::string about(const StudyDrawing& drawing, const SeenTrial& seen) {
  const auto& view = seen.view;
  auto text = fmt::format("trial {}, {}", seen.trial.number, status_name(view.record.state));
  if (view.result) text += fmt::format("\naccuracy {:.4g}", view.result->accuracy);
  const auto labels = objective_labels(drawing.study);
  for (std::size_t i = 0; i < view.values.size(); ++i)
    if (labels[i] != "accuracy") text += fmt::format("\n{}: {:.4g}", labels[i], view.values[i]);
  if (view.violation > 0) text += "\nbreaks a limit";
  return text + "\n" + params_text(drawing.study, seen.trial);
}

bool is_best(const StudyDrawing& drawing, const SeenTrial& seen) {
  return drawing.best && static_cast<std::int64_t>(seen.trial.number) == *drawing.best;
}

bool is_trained(const SeenTrial& seen) {
  return seen.view.record.state == store::TrialState::finished;
}

std::string_view style_of(const SeenTrial& seen) {
  if (!is_feasible(seen)) return "faint";
  return is_trained(seen) ? "filled" : "hollow";
}

/// Every so-many-th, so that at most `most` are left.
template <class T>
std::vector<T> thinned(std::vector<T> items, std::size_t most) {
  if (items.size() <= most) return items;
  std::vector<T> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(items[i * items.size() / most]);
  return kept;
}

/// An axis that holds the values, without the few that lie so far off that they would press the
/// others together; logarithmic if they differ by more than a factor of a hundred.
Axis axis_for(std::string label, std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  Axis axis{std::move(label), 0, 1, AxisScale::linear};
  if (values.empty()) return axis;
  std::ranges::sort(values);
  const auto at = [&values](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  double low = values.front();
  double high = values.back();
  const double middle = at(0.95) - at(0.05);
  if (values.size() >= 20 && middle > 0) {
    if (at(0.05) - low > 2 * middle) low = at(0.05);
    if (high - at(0.95) > 2 * middle) high = at(0.95);
  }
  if (low > 0 && high / low > 100) {
    axis.scale = AxisScale::logarithmic;
    axis.low = low / 1.2;
    axis.high = high * 1.2;
    return axis;
  }
  const double margin = high > low ? 0.06 * (high - low) : std::max(0.05 * std::abs(low), 0.05);
  axis.low = low >= 0 ? std::max(0.0, low - margin) : low - margin;
  axis.high = high + margin;
  return axis;
}

bool is_inside(const Axis& axis, double value) {
  return std::isfinite(value) && value >= axis.low && value <= axis.high;
}

/// "3 of 200 points are not shown: they lie far outside."
std::string left_out_note(std::size_t outside, std::size_t thinned_away) {
  std::string text;
  if (thinned_away > 0)
    text +=
        fmt::format(" {} more trials are not drawn, so that the page stays small.", thinned_away);
  if (outside > 0)
    text += fmt::format(" {} trial{} far outside of the frame.", outside,
                        outside == 1 ? " lies" : "s lie");
  return text.empty() ? "" : fmt::format("<p>{}</p>\n", text.substr(1));
}

/// As the best trial is chosen: once some were trained to the end, only those count.
std::vector<ChartPoint> best_so_far(std::span<const SeenTrial> trials) {
  const bool some_trained = std::ranges::any_of(
      trials, [](const SeenTrial& seen) { return is_feasible(seen) && is_trained(seen); });
  std::vector<ChartPoint> line;
  double best = 0;
  for (const auto& seen : trials) {
    if (!is_feasible(seen) || (some_trained && !is_trained(seen))) continue;
    if (!line.empty() && seen.minimized.front() >= best) continue;
    best = seen.minimized.front();
    line.push_back({static_cast<double>(seen.trial.number), seen.view.values.front()});
  }
  if (!line.empty())
    line.push_back({static_cast<double>(trials.back().trial.number), line.back().y});
  return line;
}

// --- parallel coordinates ---

constexpr std::size_t kMostAxes = 12;
constexpr std::size_t kMostLines = 400;
constexpr double kPlotWidth = 960;
constexpr double kPlotHeight = 380;
constexpr double kPlotTop = 44;
constexpr double kPlotBottom = 340;
constexpr double kPlotSide = 60;

/// One vertical axis: where trials lie on it (0 at the bottom), and what is written beside it.
struct Vertical {
  std::string title;
  std::vector<std::pair<double, std::string>> labels;
};

double height_at(double share) { return kPlotBottom - share * (kPlotBottom - kPlotTop); }

std::string short_text(const nlohmann::ordered_json& value) {
  auto text = value.is_string()         ? value.get<std::string>()
              : value.is_number_float() ? fmt::format("{:.3g}", value.get<double>())
                                        : value.dump();
  constexpr std::size_t kMost = 14;
  return text.size() > kMost ? text.substr(0, kMost - 1) + "…" : text;
}

nlohmann::ordered_json value_json(const tune::Value& value) {
  return std::visit([](const auto& one) { return nlohmann::ordered_json(one); }, value);
}

/// Where a value lies on its axis; choices stand at equal distances.
double place_of(const tune::Parameters& parameters, std::size_t p, double value) {
  const auto& parameter = parameters.all()[p];
  if (std::isnan(value)) return -0.1;  // below the axis: the parameter means nothing in this trial
  if (!parameter.is_choice()) return parameters.to_unit(p, value);
  if (parameter.values.size() == 1) return 0.5;
  return value / static_cast<double>(parameter.values.size() - 1);
}

Vertical vertical_of(const tune::Parameters& parameters, std::size_t p) {
  const auto& parameter = parameters.all()[p];
  Vertical axis{.title = parameter.name};
  if (parameter.is_choice()) {
    const auto count = parameter.values.size();
    const std::size_t step = (count + 9) / 10;
    for (std::size_t i = 0; i < count; i += step)
      axis.labels.emplace_back(place_of(parameters, p, static_cast<double>(i)),
                               short_text(value_json(parameter.values[i])));
    return axis;
  }
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const double value = parameters.from_unit(p, share);
    axis.labels.emplace_back(parameters.to_unit(p, value), fmt::format("{:.3g}", value));
  }
  return axis;
}

struct Lines {
  const StudyDrawing& drawing;
  std::vector<std::size_t> parameters;
  Axis objective;

  double column(std::size_t axis) const {
    return kPlotSide + static_cast<double>(axis) * (kPlotWidth - 2 * kPlotSide) /
                           static_cast<double>(parameters.size());
  }
};

double objective_share(const Axis& axis, double value) {
  const double kept = std::clamp(value, axis.low, axis.high);
  if (axis.scale == AxisScale::linear) return (kept - axis.low) / (axis.high - axis.low);
  return std::log(kept / axis.low) / std::log(axis.high / axis.low);
}

std::string trial_line(const Lines& lines, const SeenTrial& seen, std::string_view style) {
  std::string points;
  const auto& parameters = lines.drawing.study.parameters;
  for (std::size_t i = 0; i < lines.parameters.size(); ++i) {
    const auto p = lines.parameters[i];
    points += fmt::format("{:.0f},{:.1f} ", lines.column(i),
                          height_at(place_of(parameters, p, seen.trial.point[p])));
  }
  points += fmt::format("{:.0f},{:.1f}", lines.column(lines.parameters.size()),
                        height_at(objective_share(lines.objective, seen.view.values.front())));
  return fmt::format("<polyline class=\"{}\" points=\"{}\"><title>{}</title></polyline>\n", style,
                     points, escape_html(about(lines.drawing, seen)));
}

std::string vertical_svg(const Vertical& axis, double x) {
  auto text = fmt::format(
      "<line class=\"frame\" x1=\"{0:.0f}\" x2=\"{0:.0f}\" y1=\"{1}\" y2=\"{2}\"/>"
      "<text class=\"name\" x=\"{0:.0f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
      x, kPlotTop, kPlotBottom, kPlotTop - 22, escape_html(axis.title));
  for (const auto& [share, words] : axis.labels)
    text += fmt::format("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>\n", x + 5,
                        height_at(share) + 4, escape_html(words));
  return text;
}

Vertical objective_vertical(const Axis& axis) {
  Vertical vertical{.title = "objective"};
  const auto ticks = axis.scale == AxisScale::linear ? linear_ticks(axis.low, axis.high)
                                                     : log_ticks(axis.low, axis.high);
  for (const double tick : ticks)
    vertical.labels.emplace_back(objective_share(axis, tick), fmt::format("{:.4g}", tick));
  return vertical;
}

// --- timeline ---

constexpr std::size_t kMostRows = 32;
constexpr std::size_t kMostBars = 3'000;
constexpr double kRow = 18;
constexpr double kNames = 150;

struct Bar {
  const SeenTrial* seen = nullptr;
  const store::LevelRecord* level = nullptr;
};

double seconds_between(store::Time from, store::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

std::vector<Bar> bars_of(const StudyDrawing& drawing) {
  std::vector<Bar> bars;
  for (const auto& seen : drawing.trials)
    for (const auto& level : seen.view.record.levels)
      if (level.ended > level.started && !level.worker.empty()) bars.push_back({&seen, &level});
  // The newest are shown: of a large study, the past is known in pieces only.
  std::ranges::sort(bars, {}, [](const Bar& bar) { return bar.level->started; });
  if (bars.size() > kMostBars)
    bars.erase(bars.begin(), bars.end() - static_cast<std::ptrdiff_t>(kMostBars));
  return bars;
}

std::string bar_svg(const StudyDrawing& drawing, const Bar& bar, double x, double width, double y) {
  const auto& record = bar.seen->view.record;
  const auto title =
      fmt::format("trial {}, level {}: {} epochs on {:.0f} % of the data, {}, {}", record.number,
                  bar.level->level, bar.level->epochs, 100 * bar.level->data_fraction,
                  duration_text(bar.level->training_s), status_name(record.state));
  const auto style = is_best(drawing, *bar.seen)                   ? "bar-best"
                     : record.state == store::TrialState::finished ? "bar-finished"
                                                                   : "bar";
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"1.5\">"
      "<title>{}</title></rect>\n",
      style, x, y, std::max(0.8, width - 0.6), kRow - 5, escape_html(title));
}

/// The unit in which a span of time reads well.
std::pair<double, std::string> unit_for(double seconds) {
  if (seconds > 3 * 86400) return {86400, "days"};
  if (seconds > 3 * 3600) return {3600, "hours"};
  if (seconds > 180) return {60, "minutes"};
  return {1, "seconds"};
}

std::string time_axis(double seconds, double bottom) {
  const auto [unit, name] = unit_for(seconds);
  const double width = kPlotWidth - kNames - 20;
  std::string text;
  for (const double tick : linear_ticks(0, seconds / unit))
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\"/>"
        "<text x=\"{0:.1f}\" y=\"{2}\" text-anchor=\"middle\">{3:g}</text>\n",
        kNames + width * tick * unit / seconds, bottom, bottom + 16, tick);
  return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                            kNames + width / 2, bottom + 34, name);
}

}  // namespace

std::string params_text(const tune::Study& study, const tune::Trial& trial) {
  std::string text;
  const auto params = study.parameters.to_json(trial.point);
  for (const auto& [name, value] : params.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, short_text(value));
  return text;
}

std::string duration_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", 1000 * seconds);
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < std::int64_t{48} * 3600)
    return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} days {} h", whole / 86400, whole % 86400 / 3600);
}

std::string history_chart(const StudyDrawing& drawing) {
  std::vector<const SeenTrial*> known;
  std::vector<double> values;
  for (const auto& seen : drawing.trials) {
    if (seen.view.values.empty()) continue;
    known.push_back(&seen);
    values.push_back(seen.view.values.front());
  }
  if (known.empty()) return "";
  const auto y = axis_for(objective_labels(drawing.study).front(), values);
  const auto last = static_cast<double>(drawing.trials.back().trial.number);
  Chart chart({"trial", -0.01 * last - 0.5, 1.01 * last + 0.5, AxisScale::linear}, y, kSize);
  const auto shown = thinned(known, kMostPoints);
  std::size_t outside = 0;
  for (const auto* seen : shown) {
    const double value = seen->view.values.front();
    if (!is_inside(y, value)) {
      ++outside;
      continue;
    }
    chart.point({static_cast<double>(seen->trial.number), value}, style_of(*seen),
                about(drawing, *seen), fmt::format("trial-{}", seen->trial.number));
  }
  const auto line = best_so_far(drawing.trials);
  chart.steps(line, "best-line", "best so far");
  for (const auto* seen : known)
    if (is_best(drawing, *seen))
      chart.point({static_cast<double>(seen->trial.number), seen->view.values.front()}, "star",
                  "the best\n" + about(drawing, *seen), "best");
  return wide(chart.svg()) + "<ul class=\"legend\">\n" +
         line_in_legend("best-line", "best so far, trained to the end and within the limits") +
         point_in_legend("star", "best") + point_in_legend("filled", "trained to the end") +
         point_in_legend("hollow", "stopped before, or not at its end yet") +
         point_in_legend("faint", "breaks a limit") + "</ul>\n" +
         left_out_note(outside, known.size() - shown.size());
}

std::string plane_chart(const StudyDrawing& drawing, const Plane& plane) {
  if (plane.points.empty()) return "";
  std::vector<double> xs;
  std::vector<double> ys;
  std::vector<double> minimized;
  std::vector<const PlanePoint*> feasible;
  for (const auto& point : plane.points) {
    xs.push_back(point.x);
    ys.push_back(point.y);
    if (!is_feasible(*point.seen)) continue;
    feasible.push_back(&point);
    minimized.push_back(plane.x_is_better_low ? point.x : -point.x);
    minimized.push_back(plane.y_is_better_low ? point.y : -point.y);
  }
  const auto x = axis_for(plane.x_label, xs);
  const auto y = axis_for(plane.y_label, ys);
  Chart chart(x, y, kSize);
  const auto shown = thinned(plane.points, kMostPoints);
  std::size_t outside = 0;
  for (const auto& point : shown) {
    if (!is_inside(x, point.x) || !is_inside(y, point.y)) {
      ++outside;
      continue;
    }
    chart.point({point.x, point.y}, is_feasible(*point.seen) ? "hollow" : "faint",
                about(drawing, *point.seen), fmt::format("trial-{}", point.seen->trial.number));
  }
  std::vector<ChartPoint> front;
  for (const auto i : search::pareto_set({minimized, 2}))
    front.push_back({feasible[i]->x, feasible[i]->y});
  // From the better end of x on, a value of y is reached until the next one.
  std::ranges::sort(front, {},
                    [&plane](const ChartPoint& p) { return plane.x_is_better_low ? p.x : -p.x; });
  chart.steps(front, "best-line", "what no other trial beats in both");
  for (const auto i : search::pareto_set({minimized, 2}))
    chart.point({feasible[i]->x, feasible[i]->y}, "filled", about(drawing, *feasible[i]->seen),
                fmt::format("pareto-{}", feasible[i]->seen->trial.number));
  for (const auto& point : plane.points)
    if (is_best(drawing, *point.seen))
      chart.point({point.x, point.y}, "star", "the best\n" + about(drawing, *point.seen), "best");
  return wide(chart.svg()) + "<ul class=\"legend\">\n" +
         point_in_legend("filled", "no other trial is better in both") +
         point_in_legend("star", "best") + point_in_legend("hollow", "other trials") +
         point_in_legend("faint", "breaks a limit") + "</ul>\n" +
         left_out_note(outside, plane.points.size() - shown.size());
}

std::string parallel_coordinates(const StudyDrawing& drawing, const ImportanceReport& importance) {
  std::vector<const SeenTrial*> known;
  std::vector<double> values;
  for (const auto& seen : drawing.trials) {
    if (seen.view.values.empty() || !std::isfinite(seen.view.values.front())) continue;
    known.push_back(&seen);
    values.push_back(seen.view.values.front());
  }
  if (known.size() < 2) return "";
  Lines lines{.drawing = drawing, .objective = axis_for("", values)};
  for (std::size_t p = 0; p < drawing.study.parameters.size(); ++p) lines.parameters.push_back(p);
  const bool too_many = lines.parameters.size() > kMostAxes;
  if (too_many) {
    lines.parameters.clear();
    for (const auto& one : importance.parameters) lines.parameters.push_back(one.parameter);
    lines.parameters.resize(std::min(kMostAxes, lines.parameters.size()));
    std::ranges::sort(lines.parameters);
  }
  if (lines.parameters.empty()) return "";
  // The best tenth by the objective, at most fifty, in colour on top of the others.
  std::ranges::stable_sort(known, [](const SeenTrial* a, const SeenTrial* b) {
    if (is_feasible(*a) != is_feasible(*b)) return is_feasible(*a);
    return a->minimized.front() < b->minimized.front();
  });
  const auto good = std::clamp<std::size_t>(known.size() / 10, 1, 50);
  const auto others = thinned(
      std::vector(known.begin() + static_cast<std::ptrdiff_t>(good), known.end()), kMostLines);
  std::string marks;
  for (const auto* seen : others) marks += trial_line(lines, *seen, "trial");
  for (std::size_t i = good; i > 0; --i)
    marks += trial_line(lines, *known[i - 1], i == 1 ? "trial first" : "trial good");
  for (std::size_t i = 0; i < lines.parameters.size(); ++i)
    marks +=
        vertical_svg(vertical_of(drawing.study.parameters, lines.parameters[i]), lines.column(i));
  marks += vertical_svg(objective_vertical(lines.objective), lines.column(lines.parameters.size()));
  return wide(fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" class=\"parallel\">\n{}</svg>",
                          kPlotWidth, kPlotHeight, marks)) +
         fmt::format(
             "<p>A line is a trial. In colour: the best {}{}.{}{}</p>\n", good,
             good == 1 ? "" : " by the first objective",
             too_many ? fmt::format(" The {} most important parameters are shown.", kMostAxes) : "",
             others.size() + good < known.size()
                 ? fmt::format(" Of the others, {} of {} are drawn.", others.size(),
                               known.size() - good)
                 : "");
}

std::string worker_timeline(const StudyDrawing& drawing) {
  const auto bars = bars_of(drawing);
  if (bars.empty()) return "";
  auto begin = bars.front().level->started;
  auto end = bars.front().level->ended;
  std::map<std::string, std::size_t> rows;
  for (const auto& bar : bars) {
    end = std::max(end, bar.level->ended);
    if (rows.size() < kMostRows) rows.emplace(bar.level->worker, 0);
  }
  std::size_t next = 0;
  std::string marks;
  const double seconds = std::max(1e-3, seconds_between(begin, end));
  const double width = kPlotWidth - kNames - 20;
  const double bottom = kRow * static_cast<double>(rows.size()) + 6;
  marks += time_axis(seconds, bottom);
  for (auto& [name, row] : rows) {
    row = next++;
    const auto shown = name.size() > 20 ? name.substr(0, 19) + "…" : name;
    marks += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kNames - 8,
                         kRow * static_cast<double>(row) + 14, escape_html(shown));
  }
  std::size_t left_out = 0;
  for (const auto& bar : bars) {
    const auto row = rows.find(bar.level->worker);
    if (row == rows.end()) {
      ++left_out;
      continue;
    }
    const double x = kNames + width * seconds_between(begin, bar.level->started) / seconds;
    const double length = width * seconds_between(bar.level->started, bar.level->ended) / seconds;
    marks += bar_svg(drawing, bar, x, length, kRow * static_cast<double>(row->second) + 3);
  }
  return wide(fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n{}</svg>", kPlotWidth,
                          bottom + 42, marks)) +
         fmt::format(
             "<p>A bar is a level of a trial. Dark ones belong to trials that were trained "
             "to the end, the orange ones to the best.{}</p>\n",
             left_out > 0 ? fmt::format(" {} bars of further workers are left out.", left_out)
                          : "");
}

}  // namespace fleetfit::app
