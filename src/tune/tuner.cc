#include "fleetfit/tune/tuner.h"

#include <algorithm>
#include <map>

#include "fleetfit/core/random.h"
#include "fleetfit/tune/budget.h"
#include "fleetfit/tune/sampler.h"
#include "tune/observation_queue.h"
#include "tune/scheduler.h"

namespace fleetfit::tune {
namespace {

// Samplers hear of so many of the points that are on their way, the newest.
constexpr std::size_t kMostPending = 256;

SchedulerOptions scheduler_options(const Study& study) {
  const std::vector<Budget> all = levels(study.budget);
  return {.kind = study.algorithm.scheduler,
          .levels = all.size(),
          .objectives = study.objective.count(),
          .eta = study.budget.eta,
          .max_trials = study.budget.max_trials,
          .grace_epochs = static_cast<std::size_t>(all.front().epochs)};
}

bool is_user_maximized(const Objective& objective) {
  return !objective.weighted_sum && !objective.goals.empty() && objective.goals[0].maximize;
}

}  // namespace

struct Tuner::State {
  explicit State(const Study& of)
      : study(of),
        level_count(levels(of.budget).size()),
        scheduler(make_scheduler(scheduler_options(of))),
        sampler(make_sampler(of.parameters, {.kind = of.algorithm.sampler,
                                             .objectives = of.objective.count(),
                                             .levels = level_count})) {}

  /// What is kept of a trial beside what the scheduler sees.
  struct Notes {
    std::size_t expected_results = 0;  ///< whose observation is on its way
    std::size_t judged_results = 0;
    bool limit_observed = false;
  };

  const Study& study;
  std::size_t level_count;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Sampler> sampler;
  ObservationQueue observations = {};
  std::vector<TrialStatus> trials = {};
  std::vector<Notes> notes = {};
  std::size_t open = 0;                         ///< trials that have not ended
  std::map<std::size_t, Point> pending = {};    ///< points that were started and not judged
  std::map<std::size_t, End> urgent_ends = {};  ///< whatever the scheduler thinks
  std::map<std::pair<std::size_t, std::size_t>, Rung> rungs = {};
  std::optional<StartTrial> proposed = std::nullopt;  ///< until something is reported

  std::size_t top_level() const { return level_count - 1; }

  void report(const Trial& trial);
  TrialStatus status_of(const Trial& trial);
  void judge_results(const Trial& trial, TrialStatus& status);
  bool judge(const Trial& trial, const LevelResult& result, TrialStatus& status);
  void observe_broken_limit(const Trial& trial);
  std::optional<End> urgent_end(const Trial& trial, const TrialStatus& status) const;
  void note_pending(const Trial& trial, const TrialStatus& status);
  void count_rungs(std::size_t number, const std::optional<TrialStatus>& before,
                   const TrialStatus& now);
  void count_in_rung(const TrialStatus& status, std::size_t level, double value);
  StartTrial start();
  End take_urgent_end();
  Decision next(Room room);
};

TrialStatus Tuner::State::status_of(const Trial& trial) {
  // The bracket is a function of the number; a trial that others brought in may not know it.
  return {.bracket = scheduler->first_place(trial.number).bracket,
          .level = std::min(trial.level, top_level()),
          .state = trial.state,
          .judged_levels =
              trial.number < trials.size() ? trials[trial.number].judged_levels : std::size_t{0}};
}

void Tuner::State::report(const Trial& trial) {
  const bool is_new = trial.number >= trials.size();
  std::optional<TrialStatus> before;
  if (!is_new) before = trials[trial.number];
  if (is_new) {
    trials.resize(trial.number + 1);
    notes.resize(trial.number + 1);
  }
  TrialStatus now = status_of(trial);
  judge_results(trial, now);
  observe_broken_limit(trial);
  trials[trial.number] = now;
  if (!now.ended()) ++open;
  if (before && !before->ended()) --open;
  proposed.reset();
  note_pending(trial, now);
  count_rungs(trial.number, before, now);
  scheduler->changed(trial, before, now);
  urgent_ends.erase(trial.number);
  if (auto end = urgent_end(trial, now)) urgent_ends.emplace(trial.number, std::move(*end));
}

void Tuner::State::judge_results(const Trial& trial, TrialStatus& status) {
  Notes& note = notes[trial.number];
  for (; note.expected_results < trial.results.size(); ++note.expected_results) {
    const LevelResult& result = trial.results[note.expected_results];
    observations.expect(result.order, trial.number, std::min(result.level, top_level()));
  }
  while (note.judged_results < trial.results.size()) {
    if (!judge(trial, trial.results[note.judged_results], status)) break;
    ++note.judged_results;
  }
  if (!status.ended()) return;
  // Nobody will say more of it.
  for (std::size_t i = note.judged_results; i < trial.results.size(); ++i) {
    observations.drop(trial.number, std::min(trial.results[i].level, top_level()));
  }
}

/// False while something is not known yet.
bool Tuner::State::judge(const Trial& trial, const LevelResult& result, TrialStatus& status) {
  const std::size_t level = std::min(result.level, top_level());
  if (lacking_number(study, trial, result)) {
    observations.drop(trial.number, level);
    return true;
  }
  if (needs_inference(study) && !trial.inference) return false;
  auto values = objective_values(study, trial, result);
  if (!values) return false;
  const double broken = violation(study, trial, result);
  status.judged_levels = std::max(status.judged_levels, level + 1);
  count_in_rung(status, level, values->front());
  scheduler->judged({.trial = trial.number, .values = *values, .violation = broken}, status.bracket,
                    level);
  observations.fill({.trial = trial.number,
                     .point = trial.point,
                     .level = level,
                     .values = std::move(*values),
                     .violation = broken});
  return true;
}

/// A network that was stopped before it was trained teaches the sampler, too.
void Tuner::State::observe_broken_limit(const Trial& trial) {
  Notes& note = notes[trial.number];
  if (trial.state != TrialState::stopped || !trial.results.empty() || !trial.inference ||
      note.limit_observed) {
    return;
  }
  const double broken = device_violation(study, *trial.inference);
  if (!(broken > 0)) return;
  note.limit_observed = true;
  const std::size_t level = std::min(trial.level, top_level());
  observations.expect(trial.order, trial.number, level);
  observations.fill(
      {.trial = trial.number, .point = trial.point, .level = level, .violation = broken});
}

std::optional<End> Tuner::State::urgent_end(const Trial& trial, const TrialStatus& status) const {
  if (status.ended() || trial.stop_requested) return std::nullopt;
  if (trial.inference) {
    if (auto reason = broken_limit(study, *trial.inference)) {
      return End{trial.number, TrialState::stopped, std::move(*reason)};
    }
  }
  if (status.state != TrialState::paused) return std::nullopt;
  if (!trial.results.empty()) {
    if (auto reason = lacking_number(study, trial, trial.results.back())) {
      return End{trial.number, TrialState::failed, std::move(*reason)};
    }
  }
  if (status.waits_at(top_level())) return End{trial.number, TrialState::finished, ""};
  return std::nullopt;
}

void Tuner::State::note_pending(const Trial& trial, const TrialStatus& status) {
  if (status.ended() || status.judged_levels > 0) {
    pending.erase(trial.number);
  } else {
    pending.insert_or_assign(trial.number, trial.point);
  }
}

void Tuner::State::count_in_rung(const TrialStatus& status, std::size_t level, double value) {
  Rung& rung = rungs[{status.bracket, level}];
  rung.bracket = status.bracket;
  rung.level = level;
  ++rung.ended;
  const bool maximized = is_user_maximized(study.objective);
  const double shown = maximized ? -value : value;
  if (!rung.best || (maximized ? shown > *rung.best : shown < *rung.best)) rung.best = shown;
}

void Tuner::State::count_rungs(std::size_t number, const std::optional<TrialStatus>& before,
                               const TrialStatus& now) {
  const std::size_t from = before ? before->level : scheduler->first_place(number).level;
  for (std::size_t level = from; level < now.level; ++level) {
    ++rungs[{now.bracket, level}].promoted;
  }
}

StartTrial Tuner::State::start() {
  observations.flush(*sampler);
  std::vector<Point> points;
  const auto newest = std::min(pending.size(), kMostPending);
  for (auto i = std::prev(pending.end(), static_cast<std::ptrdiff_t>(newest)); i != pending.end();
       ++i) {
    points.push_back(i->second);
  }
  const std::size_t number = trials.size();
  core::Random random = core::Random(study.seed).split(number);
  const Scheduler::Place place = scheduler->first_place(number);
  return {.number = number,
          .point = sampler->suggest(number, points, random),
          .bracket = place.bracket,
          .level = place.level};
}

/// Of a running trial, which cannot end at once, only once.
End Tuner::State::take_urgent_end() {
  End end = urgent_ends.begin()->second;
  if (trials[end.number].state == TrialState::running) urgent_ends.erase(end.number);
  return end;
}

Decision Tuner::State::next(Room room) {
  if (!urgent_ends.empty()) return take_urgent_end();
  if (auto end = scheduler->next_end(trials)) return std::move(*end);
  if (room == Room::some) {
    if (const auto promotion = scheduler->next_promotion(trials)) return *promotion;
    if (trials.size() < study.budget.max_trials) {
      if (!proposed) proposed = start();
      return *proposed;
    }
  }
  if (open == 0 && trials.size() >= study.budget.max_trials) return Done{};
  return Wait{};
}

Tuner::Tuner(const Study& study) : state_(std::make_unique<State>(study)) {}
Tuner::Tuner(Tuner&&) noexcept = default;
Tuner::~Tuner() = default;

void Tuner::report(const Trial& trial) { state_->report(trial); }

Decision Tuner::next(Room room) { return state_->next(room); }

std::vector<Tuner::Rung> Tuner::rungs() const {
  std::vector<Rung> all;
  for (const auto& [place, rung] : state_->rungs) all.push_back(rung);
  return all;
}

}  // namespace fleetfit::tune
