#include "study/conductor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"
#include "fleetfit/core/sha256.h"
#include "study/history.h"

namespace fleetfit::study {
namespace {

using std::chrono::milliseconds;
using store::TrialRecord;
using store::TrialState;

constexpr std::size_t kAtOnce = 1000;

bool is_active(TrialState state) {
  return state == TrialState::queued || state == TrialState::running;
}

}  // namespace

Conductor::Conductor(store::StudyStore& store, const tune::Study& study,
                     BackgroundInference* pricing, TuningProgress& progress, Options options)
    : store_(store),
      study_(study),
      pricing_(pricing),
      progress_(progress),
      options_(std::move(options)),
      tuner_(study) {}

bool Conductor::prices_networks() const {
  return study_.inference.has_value() && pricing_ != nullptr &&
         (!study_.algorithm.hierarchical || tune::needs_inference(study_));
}

std::string Conductor::structure_of(const Known& known) const {
  if (!known.structure.empty()) return known.structure;
  const auto found = structures_.find(known.key);
  return found == structures_.end() ? "" : found->second;
}

const Conductor::Price* Conductor::price_of(const Known& known) const {
  if (!prices_networks()) return nullptr;
  const auto found = prices_.find(structure_of(known));
  return found == prices_.end() ? nullptr : &found->second;
}

Result<Conductor::Step> Conductor::step() {
  if (!loaded_) {
    FLEETFIT_TRY(load());
  }
  FLEETFIT_ASSIGN(const auto changed, follow_changes());
  FLEETFIT_ASSIGN(const auto answered, take_answer());
  auto decided = decide();
  if (decided && *decided == Step::idle && (changed || answered)) return Step::moved;
  return decided;
}

// The tuner wants new trials in the order of their numbers.
Status Conductor::load() {
  for (;;) {
    FLEETFIT_ASSIGN(const auto trials,
                    store_.list_trials(study_.name, static_cast<std::int64_t>(trials_.size()),
                                       kAtOnce, store::LevelDetail::all));
    for (const auto& record : trials) {
      FLEETFIT_TRY(absorb(record));
      last_change_ = std::max(last_change_, record.change);
    }
    if (trials.size() < kAtOnce) break;
  }
  loaded_ = true;
  progress_.loaded();
  return {};
}

Result<bool> Conductor::follow_changes() {
  bool any = false;
  for (;;) {
    FLEETFIT_ASSIGN(auto changes, store_.list_changes(study_.name, last_change_, kAtOnce));
    if (changes.empty()) return any;
    const auto last = changes.back().change;
    const auto is_new = [&](const TrialRecord& record) {
      return record.number >= static_cast<std::int64_t>(trials_.size());
    };
    const auto known = std::ranges::stable_partition(changes, is_new);
    std::ranges::sort(changes.begin(), known.begin(), {}, &TrialRecord::number);
    for (const auto& record : changes) FLEETFIT_TRY(absorb(record));
    last_change_ = last;
    any = true;
  }
}

Status Conductor::absorb_again(std::int64_t trial) {
  FLEETFIT_ASSIGN(const auto record, store_.find_trial(study_.name, trial));
  if (!record) return {};
  return absorb(*record);
}

Status Conductor::absorb(const TrialRecord& record) {
  FLEETFIT_ASSIGN(auto trial, trial_from_record(study_, record, {}));
  const auto number = static_cast<std::size_t>(record.number);
  const bool is_new = number >= trials_.size();
  if (is_new) trials_.resize(number + 1);
  auto& known = trials_[number];
  const Known before = is_new ? Known{.state = TrialState::paused, .levels = 1} : known;
  known = {.state = record.state,
           .key = study_.parameters.key(trial.point, tune::Group::model),
           .structure = record.structure,
           .worker = record.worker,
           .attempts = record.attempts,
           .levels = record.levels.size(),
           .level = record.level};

  const auto counts = [](const Known& one) { return is_active(one.state) || one.is_held(); };
  active_ += counts(known) ? 1 : 0;
  active_ -= counts(before) ? 1 : 0;
  if (record.state == TrialState::running) running_.insert(record.number);
  if (record.state != TrialState::running) running_.erase(record.number);
  if (store::has_ended(record.state) && (is_new || !store::has_ended(before.state)))
    progress_.ended(record);
  for (std::size_t i = before.levels; loaded_ && !is_new && i < record.levels.size(); ++i)
    if (record.levels[i].training_j) energy_ = energy_.value_or(0) + *record.levels[i].training_j;

  for (std::size_t i = 0; i < trial.results.size(); ++i)
    trial.results[i].order = record.levels[i].ended.time_since_epoch().count();
  trial.stop_requested = record.stop_requested;
  learn_structure(record, known.key);
  if (const auto* price = price_of(known); price != nullptr && price->problem.empty())
    trial.inference = price->inference;
  if (!study_.inference) trial.inference = std::vector<tune::Inference>();
  if (known.is_held()) {
    trial.state = TrialState::queued;
    if (must_wait_for_price(known)) ask_untrained(known.key, record.params);
  }
  known.is_priced = trial.inference.has_value();
  tuner_.report(trial);
  FLEETFIT_TRY(save_score(record, trial));
  return enforce(record.number);
}

void Conductor::learn_structure(const TrialRecord& record, const std::string& key) {
  if (record.structure.empty()) return;
  structures_.try_emplace(key, record.structure);
  const bool has_use = !store::has_ended(record.state) || !record.levels.empty();
  if (!prices_networks() || record.model_file.empty() || !has_use) return;
  if (!asked_.insert(record.structure).second) return;
  pricing_->ask({.key = key, .structure = record.structure, .model = record.model_file});
}

Status Conductor::save_score(const TrialRecord& record, const tune::Trial& trial) {
  if (trial.results.empty() || record.state == TrialState::failed) return {};
  const auto& result = trial.results.back();
  const auto values = tune::objective_values(study_, trial, result);
  std::optional<double> score;
  if (values && !values->empty() && std::isfinite(values->front()) &&
      tune::violation(study_, trial, result) == 0)
    score = values->front();
  if (score) progress_.scored(record, *score);
  if (score == record.score) return {};
  return store_.save_score(study_.name, record.number, score);
}

// What the tuner does not know: a network that cannot be run, and trials that wait for a price.
Status Conductor::enforce(std::int64_t trial) {
  const auto& known = trials_[static_cast<std::size_t>(trial)];
  if (store::has_ended(known.state)) return {};
  if (known.is_held() && price_of(known) == nullptr && !must_wait_for_price(known))
    return release(trial);
  const auto* price = price_of(known);
  if (price == nullptr) return {};
  if (!price->problem.empty())
    return end(trial, TrialState::failed, price->problem).map([](bool /*took_effect*/) {});
  if (known.is_held() && !tune::broken_limit(study_, price->inference)) return release(trial);
  return {};
}

Result<bool> Conductor::end(std::int64_t trial, TrialState state, const std::string& reason) {
  const bool is_running = trials_[static_cast<std::size_t>(trial)].state == TrialState::running;
  return is_running ? store_.request_stop(study_.name, trial, reason)
                    : store_.end_trial(study_.name, trial, state, reason);
}

Status Conductor::release(std::int64_t trial) {
  const auto level = trials_[static_cast<std::size_t>(trial)].level;
  FLEETFIT_TRY(store_.queue_level(study_.name, trial, level));
  return {};
}

void Conductor::wait(milliseconds timeout, const std::stop_token& stop) {
  if (answer_) return;
  if (pricing_ == nullptr || pricing_->open() == 0) {
    store_.wait_for_news(study_.name, store::News::ended, timeout, stop);
  } else {
    constexpr milliseconds kAlsoForTrials{100};
    answer_ = pricing_->wait(std::min(timeout, kAlsoForTrials), stop);
  }
}

Result<bool> Conductor::take_answer() {
  bool any = false;
  while (pricing_ != nullptr) {
    if (!answer_) answer_ = pricing_->wait(milliseconds(0), {});
    if (!answer_) return any;
    FLEETFIT_TRY(apply_answer(*answer_));
    answer_.reset();
    any = true;
  }
  return any;
}

Status Conductor::apply_answer(BackgroundInference::Answer answer) {
  if (!answer.inference && answer.inference.error().code == ErrorCode::cancelled) return {};
  if (!answer.structure.empty()) {
    structures_.try_emplace(answer.key, answer.structure);
    asked_.insert(answer.structure);
    prices_[answer.structure] =
        answer.inference
            ? Price{.inference = *std::move(answer.inference)}
            : Price{.problem = fmt::format("inference: {}", answer.inference.error().message)};
  } else {
    unknown_untrained_.insert(answer.key);
    progress_.say(fmt::format("inference: {}", answer.inference.error().message));
  }
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const auto& known = trials_[i];
    const auto number = static_cast<std::int64_t>(i);
    // A network that shows itself only when it is trained is priced then.
    if (answer.structure.empty() && known.key == answer.key && known.is_held()) {
      FLEETFIT_TRY(release(number));
    }
    if (answer.structure.empty() || structure_of(known) != answer.structure) continue;
    const bool matters = !store::has_ended(known.state) || known.levels > 0;
    if (!matters || known.is_priced) continue;
    FLEETFIT_TRY(absorb_again(number));
  }
  return {};
}

// The network's structure by a run of 0 epochs.
void Conductor::ask_untrained(const std::string& key, const std::string& params) {
  if (!study_.workload.writes_untrained || structures_.contains(key)) return;
  if (!asked_.insert("untrained " + key).second) return;
  const auto folder = options_.folder / "untrained" / core::sha256_hex(key).substr(0, 16);
  pricing_->ask({.key = key,
                 .untrained = tune::TrialJob{.command = options_.command,
                                             .study = study_.name,
                                             .params = params,
                                             .budget = {.epochs = 0, .data_fraction = 1},
                                             .checkpoint_folder = folder,
                                             .timeout_s = study_.workload.timeout_s,
                                             .memory_bytes = study_.workload.memory_bytes,
                                             .log = folder.string() + ".log"}});
}

Result<Conductor::Step> Conductor::decide() {
  bool moved = false;
  for (;;) {
    const auto decision =
        tuner_.next(active_ < options_.ahead ? tune::Room::some : tune::Room::none);
    if (std::holds_alternative<tune::Done>(decision)) return finish();
    if (std::holds_alternative<tune::Wait>(decision)) break;
    FLEETFIT_ASSIGN(const auto done, carry_out(decision));
    if (!done) return Step::idle;  // somebody was quicker: what they wrote comes with the changes
    moved = true;
  }
  return moved ? Step::moved : Step::idle;
}

Result<bool> Conductor::carry_out(const tune::Decision& decision) {
  if (const auto* start_trial = std::get_if<tune::StartTrial>(&decision))
    return start(*start_trial);
  Result<bool> written = false;
  std::size_t number = 0;
  if (const auto* promote = std::get_if<tune::Promote>(&decision)) {
    number = promote->number;
    written = store_.queue_level(study_.name, static_cast<std::int64_t>(number),
                                 static_cast<std::int64_t>(promote->level));
  } else if (const auto* ending = std::get_if<tune::End>(&decision)) {
    number = ending->number;
    written = end(static_cast<std::int64_t>(number), ending->state, ending->reason);
  }
  if (!written || !*written) return written;
  FLEETFIT_TRY(absorb_again(static_cast<std::int64_t>(number)));
  return true;
}

// Limits on devices are worth waiting for: training may turn out to be for nothing.
bool Conductor::must_wait_for_price(const Known& known) const {
  return prices_networks() && !study_.constraints.devices.empty() &&
         study_.workload.writes_untrained && !unknown_untrained_.contains(known.key) &&
         price_of(known) == nullptr;
}

Result<bool> Conductor::start(const tune::StartTrial& decision) {
  const Known known{.key = study_.parameters.key(decision.point, tune::Group::model)};
  TrialRecord record{.number = static_cast<std::int64_t>(decision.number),
                     .params = core::format_json_line(study_.parameters.to_json(decision.point)),
                     .bracket = static_cast<std::int64_t>(decision.bracket),
                     .level = static_cast<std::int64_t>(decision.level),
                     .structure = structure_of(known)};
  if (const auto* price = price_of(known); price != nullptr && !price->problem.empty()) {
    record.state = TrialState::failed;
    record.reason = price->problem;
  } else if (price != nullptr) {
    if (const auto broken = tune::broken_limit(study_, price->inference)) {
      record.state = TrialState::stopped;
      record.reason = *broken;
    }
  } else if (must_wait_for_price(known)) {
    record.state = TrialState::paused;
  }
  auto added = store_.add_trials(study_.name, std::span(&record, 1));
  if (!added || !*added) return added;
  if (prices_networks()) ask_untrained(known.key, record.params);
  FLEETFIT_TRY(absorb(record));
  return true;
}

// In hierarchical mode inference is tuned for the best network alone, when it is known.
Result<Conductor::Step> Conductor::finish() {
  if (pricing_ == nullptr || !study_.inference) return Step::done;
  if (pricing_->open() > 0 || answer_) return Step::idle;
  if (!study_.algorithm.hierarchical) return Step::done;
  FLEETFIT_ASSIGN(const auto best, store_.best_trials(study_.name, 1));
  if (best.empty() || best.front().structure.empty()) return Step::done;
  const auto& trial = best.front();
  if (!asked_.insert(trial.structure).second) return Step::done;
  pricing_->ask({.structure = trial.structure, .model = trial.model_file});
  return Step::moved;
}

std::vector<store::Claim> Conductor::running() const {
  std::vector<store::Claim> claims;
  for (const auto number : running_) {
    const auto& known = trials_[static_cast<std::size_t>(number)];
    claims.push_back(
        {.study = study_.name, .trial = number, .worker = known.worker, .attempt = known.attempts});
  }
  return claims;
}

std::optional<double> Conductor::take_energy() { return std::exchange(energy_, std::nullopt); }

}  // namespace fleetfit::study
