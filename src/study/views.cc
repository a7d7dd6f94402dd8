#include "fleetfit/study/views.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "fleetfit/core/json.h"
#include "fleetfit/report/words.h"
#include "study/sample.h"

namespace fleetfit::study {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBestInOverview = 10;
constexpr std::size_t kRunningShown = 10;
constexpr std::size_t kRungSample = 1'000;
constexpr std::size_t kMostAxes = 12;
constexpr std::size_t kMostLines = 400;

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::int64_t number_of(const SeenTrial& seen) {
  return static_cast<std::int64_t>(seen.trial.number);
}

Json history_json(const std::vector<SeenTrial>& trials) {
  auto list = Json::array();
  const auto candidates = candidates_of(trials);
  const std::set<const SeenTrial*> counted(candidates.begin(), candidates.end());
  const SeenTrial* best = nullptr;
  for (const auto& seen : trials) {
    if (seen.minimized.empty()) continue;
    if (counted.contains(&seen) &&
        (best == nullptr || seen.minimized.front() < best->minimized.front())) {
      best = &seen;
    }
    list.push_back(
        {{"trial", number_of(seen)},
         {"value", number_or_null(seen.view.values.front())},
         {"best", best == nullptr ? Json() : number_or_null(best->view.values.front())}});
  }
  return list;
}

/// The first two numbers of the objective; nothing if there is one alone.
Json pareto_json(const std::vector<std::string>& labels, const std::vector<SeenTrial>& trials) {
  if (labels.size() < 2) return nullptr;
  std::set<const SeenTrial*> front;
  for (const auto* seen : pareto_of(trials)) front.insert(seen);
  auto points = Json::array();
  for (const auto& seen : trials) {
    if (seen.view.values.size() < 2) continue;
    points.push_back({{"trial", number_of(seen)},
                      {"x", number_or_null(seen.view.values[1])},
                      {"y", number_or_null(seen.view.values[0])},
                      {"front", front.contains(&seen)}});
  }
  return {{"x", labels[1]}, {"y", labels[0]}, {"points", std::move(points)}};
}

Json axis_json(const tune::Parameter& parameter) {
  Json axis{{"name", parameter.name}};
  if (parameter.log) axis["log"] = true;
  if (!parameter.is_choice()) return axis;
  axis["values"] = Json::array();
  for (const auto& value : parameter.values)
    axis["values"].push_back(std::visit([](const auto& one) { return Json(one); }, value));
  return axis;
}

/// The best tenth, which are drawn over the others.
std::set<const SeenTrial*> best_tenth(std::vector<const SeenTrial*> trials) {
  std::ranges::sort(trials, {}, [](const SeenTrial* seen) { return seen->minimized.front(); });
  trials.resize((trials.size() + 9) / 10);
  return {trials.begin(), trials.end()};
}

Json parallel_json(const OpenedStudy& opened, const std::vector<std::string>& labels,
                   const std::vector<SeenTrial>& trials) {
  const auto parameters = opened.study.parameters.all();
  const auto count = std::min(parameters.size(), kMostAxes);
  auto axes = Json::array();
  for (std::size_t i = 0; i < count; ++i) axes.push_back(axis_json(parameters[i]));
  axes.push_back({{"name", labels.front()}});
  const auto all = candidates_of(trials);
  const auto best = best_tenth(all);
  std::vector<const SeenTrial*> others;
  for (const auto* seen : all)
    if (!best.contains(seen)) others.push_back(seen);
  auto drawn = thinned(std::vector(best.begin(), best.end()), kMostLines / 2);
  std::ranges::copy(thinned(others, kMostLines / 2), std::back_inserter(drawn));
  std::ranges::sort(drawn, {}, [](const SeenTrial* seen) { return seen->trial.number; });
  auto lines = Json::array();
  for (const auto* seen : drawn) {
    auto values = Json::array();
    for (std::size_t i = 0; i < count; ++i) values.push_back(number_or_null(seen->trial.point[i]));
    values.push_back(number_or_null(seen->view.values.front()));
    lines.push_back({{"trial", number_of(*seen)},
                     {"values", std::move(values)},
                     {"best", best.contains(seen)}});
  }
  return {{"axes", std::move(axes)}, {"lines", std::move(lines)}};
}

Json rungs_json(const std::vector<SeenTrial>& trials) {
  return core::json_list(rungs_of(trials), rung_json);
}

/// The newest ones first.
Json running_json(const std::vector<std::string>& labels, const std::vector<SeenTrial>& trials) {
  auto list = Json::array();
  for (const auto& seen : trials | std::views::reverse) {
    if (list.size() == kRunningShown) break;
    if (seen.view.record.state == store::TrialState::running)
      list.push_back(trial_json(labels, seen.view));
  }
  return list;
}

}  // namespace

Result<Json> study_overview(store::StudyStore& store, std::string_view name) {
  FLEETFIT_ASSIGN(const auto opened, open_study(store, name));
  FLEETFIT_ASSIGN(const auto sample, sample_study(store, opened, kRungSample));
  FLEETFIT_ASSIGN(auto best_records, store.best_trials(name, kBestInOverview));
  FLEETFIT_ASSIGN(const auto best, see_trials(opened, std::move(best_records)));
  const auto labels = objective_labels(opened.study);
  const auto& record = opened.record;
  Json json{{"name", record.name},
            {"created", report::date_text(record.created)},
            {"done", record.done},
            {"objective", labels},
            {"counts", counts_json(sample.counts)},
            {"trials_total", sample.counts.all()},
            {"tuning", tuning_json(record)}};
  json["best"] =
      core::json_list(best, [&](const auto& seen) { return trial_json(labels, seen.view); });
  json["running"] = running_json(labels, sample.trials);
  json["rungs"] = rungs_json(sample.trials);
  return json;
}

Result<Json> study_trials(store::StudyStore& store, std::string_view name, std::int64_t first,
                          std::size_t limit) {
  FLEETFIT_ASSIGN(const auto opened, open_study(store, name));
  FLEETFIT_ASSIGN(auto records, store.list_trials(name, first, limit, store::LevelDetail::all));
  FLEETFIT_ASSIGN(const auto trials, see_trials(opened, std::move(records)));
  const auto labels = objective_labels(opened.study);
  return core::json_list(trials, [&](const auto& seen) { return trial_json(labels, seen.view); });
}

Result<Json> study_charts(store::StudyStore& store, std::string_view name, std::size_t most) {
  FLEETFIT_ASSIGN(const auto opened, open_study(store, name));
  FLEETFIT_ASSIGN(const auto counts, store.count_trials(name));
  // Of a large study, as many of the best ones are added to the sample as it has itself.
  const bool is_small = counts.all() <= static_cast<std::int64_t>(most);
  FLEETFIT_ASSIGN(const auto sample, sample_study(store, opened, is_small ? most : most / 2));
  const auto labels = objective_labels(opened.study);
  return Json{{"objective", labels},
              {"trials_total", sample.counts.all()},
              {"trials_seen", sample.trials.size()},
              {"history", history_json(sample.trials)},
              {"pareto", pareto_json(labels, sample.trials)},
              {"rungs", rungs_json(sample.trials)},
              {"parallel", parallel_json(opened, labels, sample.trials)}};
}

}  // namespace fleetfit::study
