#include "study/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "fleetfit/report/chart.h"
#include "fleetfit/report/html.h"
#include "fleetfit/report/parallel_coordinates.h"
#include "fleetfit/report/timeline.h"
#include "fleetfit/report/words.h"
#include "fleetfit/search/pareto.h"

namespace fleetfit::study {
namespace {

constexpr std::size_t kMostPoints = 2'000;
constexpr report::ChartSize kSize{.width = 960, .height = 400};

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

std::string_view style_of(const SeenTrial& seen) {
  if (!is_feasible(seen)) return "faint";
  return is_trained(seen) ? "filled" : "hollow";
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
  return text.empty() ? "" : report::paragraph(text.substr(1));
}

std::vector<report::ChartPoint> best_so_far(std::span<const SeenTrial> trials) {
  std::vector<report::ChartPoint> line;
  double best = 0;
  for (const auto* seen : candidates_of(trials)) {
    if (!line.empty() && seen->minimized.front() >= best) continue;
    best = seen->minimized.front();
    line.push_back({static_cast<double>(seen->trial.number), seen->view.values.front()});
  }
  if (!line.empty())
    line.push_back({static_cast<double>(trials.back().trial.number), line.back().y});
  return line;
}

// --- parallel coordinates ---

constexpr std::size_t kMostAxes = 12;
constexpr std::size_t kMostLines = 400;

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

report::VerticalAxis parameter_axis(const tune::Parameters& parameters, std::size_t p) {
  const auto& parameter = parameters.all()[p];
  report::VerticalAxis axis{.title = parameter.name};
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

report::VerticalAxis objective_axis(const report::Axis& axis) {
  report::VerticalAxis vertical{.title = "objective"};
  for (const double tick : axis.ticks())
    vertical.labels.emplace_back(axis.share(tick), fmt::format("{:.4g}", tick));
  return vertical;
}

/// What the axes stand for: some parameters, then the objective.
struct Shown {
  std::vector<std::size_t> parameters;
  report::Axis objective;
};

report::AcrossLine trial_line(const StudyDrawing& drawing, const Shown& shown,
                              const SeenTrial& seen, std::string style) {
  report::AcrossLine line{.style = std::move(style), .title = about(drawing, seen)};
  for (const auto p : shown.parameters)
    line.places.push_back(place_of(drawing.study.parameters, p, seen.trial.point[p]));
  line.places.push_back(shown.objective.share(
      std::clamp(seen.view.values.front(), shown.objective.low, shown.objective.high)));
  return line;
}

/// All parameters, or the most important ones if there are many.
std::vector<std::size_t> parameters_to_show(const tune::Study& study,
                                            const ImportanceReport& importance) {
  std::vector<std::size_t> shown;
  if (study.parameters.size() <= kMostAxes) {
    for (std::size_t p = 0; p < study.parameters.size(); ++p) shown.push_back(p);
    return shown;
  }
  for (const auto& one : importance.parameters) shown.push_back(one.parameter);
  shown.resize(std::min(kMostAxes, shown.size()));
  std::ranges::sort(shown);
  return shown;
}

// --- timeline ---

constexpr std::size_t kMostRows = 32;
constexpr std::size_t kMostBars = 3'000;

/// What a worker did of a trial.
struct Work {
  const SeenTrial* seen = nullptr;
  const store::LevelRecord* level = nullptr;
};

double seconds_between(store::Time from, store::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

std::vector<Work> work_of(const StudyDrawing& drawing) {
  std::vector<Work> works;
  for (const auto& seen : drawing.trials)
    for (const auto& level : seen.view.record.levels)
      if (level.ended > level.started && !level.worker.empty()) works.push_back({&seen, &level});
  // The newest are shown: of a large study, the past is known in pieces only.
  std::ranges::sort(works, {}, [](const Work& work) { return work.level->started; });
  if (works.size() > kMostBars)
    works.erase(works.begin(), works.end() - static_cast<std::ptrdiff_t>(kMostBars));
  return works;
}

report::TimelineBar bar_of(const StudyDrawing& drawing, const Work& work, store::Time begin,
                           std::size_t row) {
  const auto& record = work.seen->view.record;
  const auto& level = *work.level;
  return {.row = row,
          .start_s = seconds_between(begin, level.started),
          .length_s = seconds_between(level.started, level.ended),
          .style = is_best(drawing, *work.seen)                  ? "bar-best"
                   : record.state == store::TrialState::finished ? "bar-finished"
                                                                 : "bar",
          .title = fmt::format("trial {}, level {}: {} epochs on {:.0f} % of the data, {}, {}",
                               record.number, level.level, level.epochs, 100 * level.data_fraction,
                               report::duration_text(level.training_s), status_name(record.state))};
}

}  // namespace

std::string params_text(const tune::Study& study, const tune::Trial& trial) {
  std::string text;
  const auto params = study.parameters.to_json(trial.point);
  for (const auto& [name, value] : params.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, short_text(value));
  return text;
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
  const auto y = report::axis_for(objective_labels(drawing.study).front(), values);
  const auto last = static_cast<double>(drawing.trials.back().trial.number);
  report::Chart chart({"trial", -0.01 * last - 0.5, 1.01 * last + 0.5, report::AxisScale::linear},
                      y, kSize);
  const auto shown = thinned(known, kMostPoints);
  std::size_t outside = 0;
  for (const auto* seen : shown) {
    const double value = seen->view.values.front();
    if (!y.holds(value)) {
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
  return report::wide(chart.svg()) +
         report::legend({report::line_in_legend(
                             "best-line", "best so far, trained to the end and within the limits"),
                         report::point_in_legend("star", "best"),
                         report::point_in_legend("filled", "trained to the end"),
                         report::point_in_legend("hollow", "stopped before, or not at its end yet"),
                         report::point_in_legend("faint", "breaks a limit")}) +
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
  const auto x = report::axis_for(plane.x_label, xs);
  const auto y = report::axis_for(plane.y_label, ys);
  report::Chart chart(x, y, kSize);
  const auto shown = thinned(plane.points, kMostPoints);
  std::size_t outside = 0;
  for (const auto& point : shown) {
    if (!x.holds(point.x) || !y.holds(point.y)) {
      ++outside;
      continue;
    }
    chart.point({point.x, point.y}, is_feasible(*point.seen) ? "hollow" : "faint",
                about(drawing, *point.seen), fmt::format("trial-{}", point.seen->trial.number));
  }
  std::vector<report::ChartPoint> front;
  for (const auto i : search::pareto_set({minimized, 2}))
    front.push_back({feasible[i]->x, feasible[i]->y});
  // From the better end of x on, a value of y is reached until the next one.
  std::ranges::sort(front, {}, [&plane](const report::ChartPoint& p) {
    return plane.x_is_better_low ? p.x : -p.x;
  });
  chart.steps(front, "best-line", "what no other trial beats in both");
  for (const auto i : search::pareto_set({minimized, 2}))
    chart.point({feasible[i]->x, feasible[i]->y}, "filled", about(drawing, *feasible[i]->seen),
                fmt::format("pareto-{}", feasible[i]->seen->trial.number));
  for (const auto& point : plane.points)
    if (is_best(drawing, *point.seen))
      chart.point({point.x, point.y}, "star", "the best\n" + about(drawing, *point.seen), "best");
  return report::wide(chart.svg()) +
         report::legend({report::point_in_legend("filled", "no other trial is better in both"),
                         report::point_in_legend("star", "best"),
                         report::point_in_legend("hollow", "other trials"),
                         report::point_in_legend("faint", "breaks a limit")}) +
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
  const Shown shown{.parameters = parameters_to_show(drawing.study, importance),
                    .objective = report::axis_for("", values)};
  if (shown.parameters.empty()) return "";
  // The best tenth by the objective, at most fifty, in colour on top of the others.
  std::ranges::stable_sort(known, [](const SeenTrial* a, const SeenTrial* b) {
    if (is_feasible(*a) != is_feasible(*b)) return is_feasible(*a);
    return a->minimized.front() < b->minimized.front();
  });
  const auto good = std::clamp<std::size_t>(known.size() / 10, 1, 50);
  const auto others = thinned(
      std::vector(known.begin() + static_cast<std::ptrdiff_t>(good), known.end()), kMostLines);
  std::vector<report::AcrossLine> lines;
  for (const auto* seen : others) lines.push_back(trial_line(drawing, shown, *seen, "trial"));
  for (std::size_t i = good; i > 0; --i)
    lines.push_back(
        trial_line(drawing, shown, *known[i - 1], i == 1 ? "trial first" : "trial good"));
  std::vector<report::VerticalAxis> axes;
  for (const auto p : shown.parameters) axes.push_back(parameter_axis(drawing.study.parameters, p));
  axes.push_back(objective_axis(shown.objective));
  const bool too_many = drawing.study.parameters.size() > kMostAxes;
  return report::parallel_coordinates(axes, lines) +
         report::paragraph(fmt::format(
             "A line is a trial. In colour: the best {}{}.{}{}", good,
             good == 1 ? "" : " by the first objective",
             too_many ? fmt::format(" The {} most important parameters are shown.", kMostAxes) : "",
             others.size() + good < known.size()
                 ? fmt::format(" Of the others, {} of {} are drawn.", others.size(),
                               known.size() - good)
                 : ""));
}

std::string worker_timeline(const StudyDrawing& drawing) {
  const auto works = work_of(drawing);
  if (works.empty()) return "";
  const auto begin = works.front().level->started;
  auto end = works.front().level->ended;
  std::map<std::string, std::size_t> rows;
  for (const auto& work : works) {
    end = std::max(end, work.level->ended);
    if (rows.size() < kMostRows) rows.emplace(work.level->worker, 0);
  }
  std::vector<std::string> names;
  for (auto& [name, row] : rows) {
    row = names.size();
    names.push_back(name);
  }
  std::vector<report::TimelineBar> bars;
  for (const auto& work : works)
    if (const auto row = rows.find(work.level->worker); row != rows.end())
      bars.push_back(bar_of(drawing, work, begin, row->second));
  const auto left_out = works.size() - bars.size();
  return report::timeline(names, bars, std::max(1e-3, seconds_between(begin, end))) +
         report::paragraph(fmt::format(
             "A bar is a level of a trial. Dark ones belong to trials that were trained to the "
             "end, the orange ones to the best.{}",
             left_out > 0 ? fmt::format(" {} bars of further workers are left out.", left_out)
                          : ""));
}

}  // namespace fleetfit::study
