#include "fleetfit/study/dialogue.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "fleetfit/study/tuning.h"
#include "fleetfit/tune/tuner.h"
#include "study/history.h"
#include "study/sample.h"

namespace fleetfit::study {
namespace {

using std::chrono::milliseconds;
using store::TrialState;

constexpr std::size_t kPage = 10'000;
constexpr auto kLead = milliseconds(60'000);
constexpr auto kPatience = milliseconds(10'000);
constexpr auto kPause = milliseconds(50);
constexpr auto kForEver = std::chrono::hours(24 * 365 * 100);

bool has_goal(const tune::Study& study, tune::Metric metric) {
  return std::ranges::any_of(study.objective.goals,
                             [metric](const tune::Goal& goal) { return goal.metric == metric; });
}

bool needs_accuracy(const tune::Study& study) {
  return study.constraints.accuracy || has_goal(study, tune::Metric::accuracy) ||
         has_goal(study, tune::Metric::ratio_of_time) ||
         has_goal(study, tune::Metric::ratio_of_energy);
}

/// What a tuner has decided and nobody has written yet.
struct Batch {
  std::vector<store::TrialRecord> started = {};
  std::vector<store::TrialDecision> decisions = {};
  std::vector<tune::End> stops = {};  ///< of trials that somebody evaluates just now
  std::size_t to_evaluate = 0;
  bool done = false;
};

std::string metrics_text(const ToldValues& values) { return nlohmann::json(values.other).dump(); }

}  // namespace

struct StudyDialogue::State {
  StudyPlace place;
  store::StudyStore& store;
  OpenedStudy opened;
  DialogueOptions options;
  std::string tuner_name;
  std::vector<tune::Budget> levels;
  store::Time leads_until = {};
  std::unique_ptr<tune::Tuner> tuner = {};
  std::int64_t since = 0;
  std::size_t known = 0;                                   // trials that the tuner knows
  std::size_t queued = 0;                                  // of those
  std::unordered_map<std::size_t, tune::Trial> open = {};  // that have not ended

  State(const StudyPlace& where, OpenedStudy study, DialogueOptions wanted)
      : place(where),
        store(place.studies),
        opened(std::move(study)),
        options(std::move(wanted)),
        tuner_name(fmt::format("{}-{}", options.worker, ::getpid())),
        levels(tune::levels(opened.study.budget)) {}

  const std::string& name() const { return opened.record.name; }

  store::Time now() const { return std::chrono::time_point_cast<milliseconds>(place.clock.date()); }

  store::Time lease_end() const {
    if (!options.lease_s) return now() + kForEver;
    return now() + milliseconds(static_cast<std::int64_t>(1000 * *options.lease_s));
  }

  Result<bool> lead();
  Status let_others_lead();

  void report(tune::Trial trial);
  void forget_tuner();
  /// Tells the tuner all that has changed; new trials in the order of their numbers.
  Status follow();
  /// One decision. False if there is none to be had.
  bool decide(Batch& batch, tune::Room room);
  void end(Batch& batch, const tune::End& end);
  Status write(const Batch& batch);

  Result<std::vector<store::TrialRecord>> claim(std::size_t count) const {
    return store.claim_trials(name(), options.worker, now(), lease_end(), count);
  }
  /// Decides as much as it takes to evaluate `count` trials. Says whether the study is done.
  Result<bool> prepare(std::size_t count);
  AskedTrial asked(const store::TrialRecord& record) const;

  Result<store::TrialRecord> running_trial(const ToldValues& values) const;
  store::Claim claim_of(const store::TrialRecord& record) const {
    return {.study = name(),
            .trial = record.number,
            .worker = record.worker,
            .attempt = record.attempts};
  }
  tune::Budget budget_of(const store::TrialRecord& record) const;
  store::LevelEnd level_end(const store::TrialRecord& record, const ToldValues& values) const;
  /// Finds how the trial's network is best run on the study's devices, if that is not known.
  Status price(const store::TrialRecord& record, const std::string& model);
  Status end_levels(std::span<const ToldValues> values,
                    std::span<const store::TrialRecord> records) const;
  Result<Told> judge(std::int64_t number, std::vector<store::TrialDecision>& decisions) const;
};

// --- deciding ---

Result<bool> StudyDialogue::State::lead() {
  if (now() + kLead / 2 < leads_until) return true;
  const auto until = now() + kLead;
  auto leads = store.lead_study(name(), tuner_name, now(), until);
  if (leads) leads_until = *leads ? until : store::Time();
  return leads;
}

Status StudyDialogue::State::let_others_lead() {
  if (leads_until == store::Time()) return {};
  leads_until = {};
  FLEETFIT_TRY(store.lead_study(name(), tuner_name, now(), now()));
  return {};
}

void StudyDialogue::State::report(tune::Trial trial) {
  tuner->report(trial);
  const auto number = trial.number;
  known = std::max(known, number + 1);
  const auto before = open.find(number);
  if (before != open.end() && before->second.state == TrialState::queued) --queued;
  if (trial.state == TrialState::queued) ++queued;
  if (store::has_ended(trial.state)) {
    open.erase(number);
  } else {
    open.insert_or_assign(number, std::move(trial));
  }
}

void StudyDialogue::State::forget_tuner() {
  tuner.reset();
  since = 0;
  known = 0;
  queued = 0;
  open.clear();
}

Status StudyDialogue::State::follow() {
  if (!tuner) tuner = std::make_unique<tune::Tuner>(opened.study);
  std::map<std::size_t, tune::Trial> fresh;
  std::vector<tune::Trial> changed;
  for (bool is_last = false; !is_last;) {
    FLEETFIT_ASSIGN(const auto page, store.list_changes(name(), since, kPage));
    for (const auto& record : page) {
      FLEETFIT_ASSIGN(auto trial, trial_from_record(opened.study, record, opened.known));
      since = record.change;
      if (trial.number < known) {
        changed.push_back(std::move(trial));
      } else {
        fresh.insert_or_assign(trial.number, std::move(trial));
      }
    }
    is_last = page.size() < kPage;
  }
  for (auto& trial : changed) report(std::move(trial));
  for (auto& [number, trial] : fresh) report(std::move(trial));
  return {};
}

void StudyDialogue::State::end(Batch& batch, const tune::End& end) {
  auto trial = open.at(end.number);
  if (trial.state == TrialState::running) {
    batch.stops.push_back(end);
    trial.stop_requested = true;
  } else {
    batch.decisions.emplace_back(
        store::EndTrial{static_cast<std::int64_t>(end.number), end.state, end.reason});
    trial.state = end.state;
  }
  report(std::move(trial));
}

bool StudyDialogue::State::decide(Batch& batch, tune::Room room) {
  const auto decision = tuner->next(room);
  if (const auto* start = std::get_if<tune::StartTrial>(&decision)) {
    batch.started.push_back({.number = static_cast<std::int64_t>(start->number),
                             .params = opened.study.parameters.to_json(start->point).dump(),
                             .bracket = static_cast<std::int64_t>(start->bracket),
                             .level = static_cast<std::int64_t>(start->level)});
    ++batch.to_evaluate;
    report({.number = start->number,
            .point = start->point,
            .bracket = start->bracket,
            .level = start->level});
    return true;
  }
  if (const auto* promote = std::get_if<tune::Promote>(&decision)) {
    batch.decisions.emplace_back(store::QueueLevel{static_cast<std::int64_t>(promote->number),
                                                   static_cast<std::int64_t>(promote->level)});
    ++batch.to_evaluate;
    auto trial = open.at(promote->number);
    trial.state = TrialState::queued;
    trial.level = promote->level;
    report(std::move(trial));
    return true;
  }
  if (const auto* ended = std::get_if<tune::End>(&decision)) {
    end(batch, *ended);
    return true;
  }
  batch.done = std::holds_alternative<tune::Done>(decision);
  return false;
}

Status StudyDialogue::State::write(const Batch& batch) {
  if (!batch.decisions.empty()) FLEETFIT_TRY(store.decide(name(), batch.decisions));
  for (const auto& stop : batch.stops)
    FLEETFIT_TRY(store.request_stop(name(), static_cast<std::int64_t>(stop.number), stop.reason));
  if (!batch.started.empty()) {
    FLEETFIT_ASSIGN(const auto added, store.add_trials(name(), batch.started));
    if (!added) {
      forget_tuner();
      return fail(ErrorCode::io, fmt::format("study {}: another tuner decides for it", name()));
    }
  }
  if (batch.done && !opened.record.done) {
    FLEETFIT_TRY(store.update_study(name(), 0, std::nullopt, true));
    opened.record.done = true;
  }
  return {};
}

Result<bool> StudyDialogue::State::prepare(std::size_t count) {
  FLEETFIT_TRY(follow());
  Batch batch{.to_evaluate = queued};
  while (batch.to_evaluate < count && decide(batch, tune::Room::some)) {
  }
  FLEETFIT_TRY(write(batch));
  return batch.done;
}

// --- telling ---

tune::Budget StudyDialogue::State::budget_of(const store::TrialRecord& record) const {
  const auto level = static_cast<std::size_t>(record.level);
  return level < levels.size() ? levels[level] : levels.back();
}

AskedTrial StudyDialogue::State::asked(const store::TrialRecord& record) const {
  return {.trial = record.number,
          .params = record.params,
          .budget = budget_of(record),
          .level = record.level,
          .resume = !record.levels.empty()};
}

Result<store::TrialRecord> StudyDialogue::State::running_trial(const ToldValues& values) const {
  const auto named = fmt::format("study {}, trial {}", name(), values.trial);
  FLEETFIT_ASSIGN(auto record, store.find_trial(name(), values.trial));
  if (!record) return refuse(named + ": there is no such trial");
  if (record->state != TrialState::running)
    return refuse(
        fmt::format("{}: it is {}; ask for it before telling", named, status_name(record->state)));
  if (values.failed) return std::move(*record);
  if (needs_accuracy(opened.study) && !values.accuracy)
    return refuse(named + ": values: accuracy is missing, which the study needs");
  FLEETFIT_ASSIGN(auto trial, trial_from_record(opened.study, *record, opened.known));
  const tune::LevelResult result{.accuracy = values.accuracy.value_or(0),
                                 .loss = values.loss,
                                 .training_s = values.training_s,
                                 .training_j = values.training_j,
                                 .other = values.other};
  if (const auto lacking = tune::lacking_number(opened.study, trial, result))
    return refuse(fmt::format("{}: {}", named, *lacking));
  return std::move(*record);
}

store::LevelEnd StudyDialogue::State::level_end(const store::TrialRecord& record,
                                                const ToldValues& values) const {
  const auto budget = budget_of(record);
  const auto ended = now();
  const auto took = milliseconds(static_cast<std::int64_t>(1000 * values.training_s));
  return {.claim = claim_of(record),
          .level = {.level = record.level,
                    .epochs = budget.epochs,
                    .data_fraction = budget.data_fraction,
                    .accuracy = values.accuracy.value_or(0),
                    .loss = values.loss,
                    .training_s = values.training_s,
                    .training_j = values.training_j,
                    .metrics = metrics_text(values),
                    .worker = record.worker,
                    .started = ended - took,
                    .ended = ended},
          .model_file = values.model};
}

Status StudyDialogue::State::price(const store::TrialRecord& record, const std::string& model) {
  if (!opened.study.inference || !place.inference || model.empty()) return {};
  const auto tuner_of_inference = place.inference(opened.study);
  FLEETFIT_ASSIGN(const auto structure, tuner_of_inference->structure_of(model));
  FLEETFIT_TRY(store.save_structure(claim_of(record), structure, model));
  if (opened.known.of(structure)) return {};
  FLEETFIT_TRY(tuner_of_inference->tune(structure, model, {}));
  FLEETFIT_ASSIGN(auto answers, KnownInference::load(store, opened.study));
  opened.known = std::move(answers);
  return {};
}

Status StudyDialogue::State::end_levels(std::span<const ToldValues> values,
                                        std::span<const store::TrialRecord> records) const {
  std::vector<store::LevelEnd> ends;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].failed) {
      ends.push_back(level_end(records[i], values[i]));
      continue;
    }
    const auto& reason = values[i].failed->empty() ? "failed, as was told" : *values[i].failed;
    FLEETFIT_TRY(store.give_up(claim_of(records[i]), TrialState::failed, reason));
  }
  if (ends.empty()) return {};
  FLEETFIT_ASSIGN(const auto holds, store.end_levels(ends));
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (holds[i] == store::Hold::lost)
      return fail(ErrorCode::io, fmt::format("study {}, trial {}: somebody else has it by now",
                                             name(), ends[i].claim.trial));
  return {};
}

Result<Told> StudyDialogue::State::judge(std::int64_t number,
                                         std::vector<store::TrialDecision>& decisions) const {
  FLEETFIT_ASSIGN(auto record, store.find_trial(name(), number));
  if (!record) return fail(ErrorCode::internal, fmt::format("trial {} has gone", number));
  FLEETFIT_ASSIGN(auto seen, see_trial(opened, std::move(*record)));
  const auto& view = seen.view;
  Told told{.trial = number,
            .status = std::string(status_name(view.record.state)),
            .values = view.values,
            .keeps_limits = !(view.violation > 0)};
  if (view.record.state != TrialState::paused) return told;
  if (is_feasible(seen) && std::isfinite(seen.minimized.front()))
    decisions.emplace_back(store::SaveScore{number, seen.minimized.front()});
  // Without a scheduler nothing else can follow, and no tuner is needed to say so.
  if (opened.study.algorithm.scheduler == tune::SchedulerKind::none) {
    decisions.emplace_back(store::EndTrial{number, TrialState::finished, ""});
    told.status = status_name(TrialState::finished);
  }
  return told;
}

// --- the conversation ---

StudyDialogue::StudyDialogue(std::unique_ptr<State> state) : state_(std::move(state)) {}
StudyDialogue::StudyDialogue(StudyDialogue&&) noexcept = default;
StudyDialogue::~StudyDialogue() = default;

Result<StudyDialogue> StudyDialogue::open(const StudyPlace& place, std::string_view study,
                                          const DialogueOptions& options) {
  FLEETFIT_ASSIGN(auto opened, open_study(place.studies, study));
  return StudyDialogue(std::make_unique<State>(place, std::move(opened), options));
}

Result<Asked> StudyDialogue::ask(std::size_t count) {
  Asked asked;
  const auto begin = state_->now();
  for (;;) {
    FLEETFIT_ASSIGN(const auto leads, state_->lead());
    if (leads) {
      FLEETFIT_ASSIGN(asked.done, state_->prepare(count));
    }
    FLEETFIT_ASSIGN(const auto claimed, state_->claim(count));
    for (const auto& record : claimed) asked.trials.push_back(state_->asked(record));
    if (leads || !asked.trials.empty()) return asked;
    if (state_->now() - begin > kPatience)
      return fail(ErrorCode::io,
                  fmt::format("study {}: another tuner decides for it, and no trial is waiting",
                              state_->name()));
    std::this_thread::sleep_for(kPause);
  }
}

Result<std::vector<Told>> StudyDialogue::tell(std::span<const ToldValues> values) {
  std::vector<store::TrialRecord> records;
  std::set<std::int64_t> numbers;
  for (const auto& one : values) {
    FLEETFIT_ASSIGN(auto record, state_->running_trial(one));
    if (!numbers.insert(one.trial).second)
      return refuse(fmt::format("trial {} is told twice", one.trial));
    records.push_back(std::move(record));
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    FLEETFIT_TRY(state_->price(records[i], values[i].model));
  FLEETFIT_TRY(state_->end_levels(values, records));
  std::vector<Told> all;
  std::vector<store::TrialDecision> decisions;
  for (const auto& one : values) {
    FLEETFIT_ASSIGN(auto told, state_->judge(one.trial, decisions));
    all.push_back(std::move(told));
  }
  if (!decisions.empty()) FLEETFIT_TRY(state_->store.decide(state_->name(), decisions));
  return all;
}

Status StudyDialogue::let_others_decide() { return state_->let_others_lead(); }

Status StudyDialogue::settle() {
  if (state_->opened.study.algorithm.scheduler != tune::SchedulerKind::none) {
    FLEETFIT_ASSIGN(const auto leads, state_->lead());
    if (!leads) return {};  // the one that leads will do it
    FLEETFIT_TRY(state_->follow());
    Batch batch;
    while (state_->decide(batch, tune::Room::none)) {
    }
    FLEETFIT_TRY(state_->write(batch));
  }
  return state_->let_others_lead();
}

}  // namespace fleetfit::study
