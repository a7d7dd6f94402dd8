#include "study/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "fleetfit/search/pareto.h"

namespace fleetfit::study {
namespace {

/// Pages that a large study is read by.
constexpr std::size_t kPieces = 64;
constexpr std::size_t kBest = 1'000;
constexpr std::size_t kPage = 10'000;

std::string params_by_group(const tune::Study& study, const nlohmann::json& params) {
  nlohmann::ordered_json groups = {{"model", nlohmann::ordered_json::object()},
                                   {"training", nlohmann::ordered_json::object()},
                                   {"system", nlohmann::ordered_json::object()}};
  for (const auto& parameter : study.parameters.all())
    if (const auto at = params.find(parameter.name); at != params.end())
      groups[std::string(tune::to_string(parameter.group))][parameter.name] = *at;
  return groups.dump();
}

std::optional<tune::Budget> budget_of(const tune::Study& study, const store::TrialRecord& record,
                                      const std::vector<tune::Budget>& levels) {
  const bool has_result = !record.levels.empty() && record.levels.back().level == record.level;
  if (has_result) {
    const auto& last = record.levels.back();
    return tune::Budget{.epochs = last.epochs, .data_fraction = last.data_fraction};
  }
  const auto level = static_cast<std::size_t>(record.level);
  if (study.budget.max_epochs > 0 && level < levels.size()) return levels[level];
  return std::nullopt;
}

Status append(std::vector<SeenTrial>& all, Result<std::vector<SeenTrial>> more) {
  FLEETFIT_TRY(more);
  std::ranges::move(*more, std::back_inserter(all));
  return {};
}

/// Where pieces of a large study begin, and how long they are.
struct Piece {
  std::int64_t first = 0;
  std::size_t length = 0;
};

std::vector<Piece> pieces_of(std::int64_t trials, std::size_t most) {
  if (static_cast<std::size_t>(trials) <= most) return {{0, static_cast<std::size_t>(trials)}};
  const std::size_t ends = most / 4;  // the first and the last ones, whole
  const std::size_t length = (most - 2 * ends) / kPieces;
  std::vector<Piece> pieces = {{0, ends}};
  const auto from = static_cast<std::int64_t>(ends);
  const auto between = trials - 2 * static_cast<std::int64_t>(ends);
  for (std::size_t i = 0; i < kPieces; ++i)
    pieces.push_back(
        {from + between * static_cast<std::int64_t>(i) / std::int64_t{kPieces}, length});
  pieces.push_back({trials - static_cast<std::int64_t>(ends), ends});
  return pieces;
}

}  // namespace

bool is_feasible(const SeenTrial& seen) {
  return !seen.minimized.empty() && !(seen.view.violation > 0) &&
         seen.view.record.state != store::TrialState::failed;
}

bool is_trained(const SeenTrial& seen) {
  return seen.view.record.state == store::TrialState::finished;
}

std::vector<const SeenTrial*> candidates_of(std::span<const SeenTrial> trials) {
  const bool some_trained = std::ranges::any_of(
      trials, [](const SeenTrial& seen) { return is_feasible(seen) && is_trained(seen); });
  std::vector<const SeenTrial*> all;
  for (const auto& seen : trials)
    if (is_feasible(seen) && (!some_trained || is_trained(seen))) all.push_back(&seen);
  return all;
}

Result<OpenedStudy> open_study(store::StudyStore& store, std::string_view name) {
  FLEETFIT_ASSIGN(auto record, store.find_study(name));
  if (!record)
    return fail(ErrorCode::not_found,
                fmt::format("there is no study {}; 'fleetfit study list' lists them", name));
  FLEETFIT_ASSIGN(auto study, tune::parse_study(record->definition, fmt::format("study {}", name)));
  study.name = name;
  study.seed = record->seed;
  FLEETFIT_ASSIGN(auto known, KnownInference::load(store, study));
  return OpenedStudy{std::move(*record), std::move(study), std::move(known)};
}

Result<SeenTrial> see_trial(const OpenedStudy& opened, store::TrialRecord record) {
  auto all = see_trials(opened, {std::move(record)});
  FLEETFIT_TRY(all);
  return std::move(all->front());
}

Result<std::vector<SeenTrial>> see_trials(const OpenedStudy& opened,
                                          std::vector<store::TrialRecord> records) {
  const auto levels = tune::levels(opened.study.budget);
  std::vector<SeenTrial> all;
  all.reserve(records.size());
  for (auto& record : records) {
    FLEETFIT_ASSIGN(auto trial, trial_from_record(opened.study, record, opened.known));
    SeenTrial seen;
    seen.trial = std::move(trial);
    auto& view = seen.view;
    view.params_by_group = params_by_group(
        opened.study, nlohmann::json(opened.study.parameters.to_json(seen.trial.point)));
    view.budget = budget_of(opened.study, record, levels);
    if (!seen.trial.results.empty()) {
      view.result = seen.trial.results.back();
      view.violation = tune::violation(opened.study, seen.trial, *view.result);
      if (auto values = tune::objective_values(opened.study, seen.trial, *view.result)) {
        view.values = as_the_user_counts(opened.study, *values);
        seen.minimized = std::move(*values);
      }
    }
    view.record = std::move(record);
    all.push_back(std::move(seen));
  }
  return all;
}

Result<StudySample> sample_study(store::StudyStore& store, const OpenedStudy& opened,
                                 std::size_t most) {
  const auto& name = opened.record.name;
  StudySample sample;
  FLEETFIT_ASSIGN(const auto counts, store.count_trials(name));
  sample.counts = counts;
  sample.is_whole = static_cast<std::size_t>(counts.all()) <= most;
  const auto add = [&](Result<std::vector<store::TrialRecord>> records) -> Status {
    FLEETFIT_TRY(records);
    return append(sample.trials, see_trials(opened, std::move(*records)));
  };
  for (const auto& piece : pieces_of(counts.all(), most)) {
    if (piece.length == 0) continue;
    FLEETFIT_TRY(add(store.list_trials(name, piece.first, piece.length, store::LevelDetail::all)));
  }
  if (!sample.is_whole) FLEETFIT_TRY(add(store.best_trials(name, kBest)));
  const auto number = [](const SeenTrial& seen) { return seen.trial.number; };
  std::ranges::stable_sort(sample.trials, {}, number);
  const auto repeated = std::ranges::unique(sample.trials, {}, number);
  sample.trials.erase(repeated.begin(), repeated.end());
  return sample;
}

std::vector<RungView> rungs_of(std::span<const SeenTrial> trials) {
  std::map<std::pair<std::int64_t, std::int64_t>, RungView> rungs;
  for (const auto& seen : trials) {
    const auto& record = seen.view.record;
    for (const auto& level : record.levels) {
      auto& rung = rungs[{record.bracket, level.level}];
      rung.bracket = record.bracket;
      rung.level = level.level;
      rung.budget = {.epochs = level.epochs, .data_fraction = level.data_fraction};
      rung.best_accuracy =
          rung.ended == 0 ? level.accuracy : std::max(rung.best_accuracy, level.accuracy);
      ++rung.ended;
      if (record.level > level.level) ++rung.promoted;
    }
  }
  std::vector<RungView> list;
  for (const auto& [key, rung] : rungs) list.push_back(rung);
  return list;
}

Candidate candidate_of(const OpenedStudy& opened, const SeenTrial& seen) {
  Candidate candidate{.trial = seen.view};
  if (!opened.study.inference) return candidate;
  for (const auto& device : opened.study.inference->devices) {
    const auto* answer = opened.known.find(seen.view.record.structure, device);
    if (answer == nullptr) continue;
    if (answer->best) {
      candidate.deployments.push_back({device, answer->trials[*answer->best]});
    } else {
      candidate.undeployable.push_back(fmt::format(
          "{}: {}", device,
          answer->trials.empty() ? "nothing was tried" : answer->trials.front().reason));
    }
  }
  return candidate;
}

std::vector<const SeenTrial*> pareto_of(std::span<const SeenTrial> trials) {
  const auto candidates = candidates_of(trials);
  std::vector<double> values;
  for (const auto* seen : candidates)
    values.insert(values.end(), seen->minimized.begin(), seen->minimized.end());
  std::vector<const SeenTrial*> set;
  if (candidates.empty()) return set;
  const search::PointsView points{values, candidates.front()->minimized.size()};
  for (const auto i : search::pareto_set(points)) set.push_back(candidates[i]);
  return set;
}

Result<std::vector<SeenTrial>> pareto_of_all(store::StudyStore& store, const OpenedStudy& opened) {
  const auto objectives = opened.study.objective.count();
  search::ParetoArchive finished(objectives);
  search::ParetoArchive others(objectives);
  const auto add = [&](const store::TrialRecord& record) -> Status {
    if (record.levels.empty() || record.state == store::TrialState::failed) return {};
    FLEETFIT_ASSIGN(const auto trial, results_from_record(opened.study, record, opened.known));
    const auto& result = trial.results.back();
    const auto values = tune::objective_values(opened.study, trial, result);
    if (!values || tune::violation(opened.study, trial, result) > 0) return {};
    const bool is_last = record.state == store::TrialState::finished;
    (is_last ? finished : others).add({*values, objectives}, trial.number);
    return {};
  };
  for (std::int64_t first = 0;;) {
    FLEETFIT_ASSIGN(const auto page,
                    store.list_trials(opened.record.name, first, kPage, store::LevelDetail::all));
    if (page.empty()) break;
    first = page.back().number + 1;
    for (const auto& record : page) FLEETFIT_TRY(add(record));
  }
  std::vector<store::TrialRecord> records;
  for (const auto number : (finished.numbers().empty() ? others : finished).numbers()) {
    FLEETFIT_ASSIGN(auto record,
                    store.find_trial(opened.record.name, static_cast<std::int64_t>(number)));
    if (record) records.push_back(std::move(*record));
  }
  return see_trials(opened, std::move(records));
}

}  // namespace fleetfit::study
