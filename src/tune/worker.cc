#include "fleetfit/tune/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "fleetfit/core/json.h"
#include "fleetfit/core/random.h"
#include "fleetfit/store/gone.h"
#include "fleetfit/tune/patience.h"
#include "fleetfit/tune/training_energy.h"

namespace fleetfit::tune {
namespace {

using std::chrono::milliseconds;
using store::Claim;
using store::Hold;
using store::TrialRecord;
using store::TrialState;

/// Why a training is to end before its end.
enum class Interruption : std::uint8_t { none, stop_requested, lost, worker_stopped };

/// Renews the lease of a trial from a thread of its own, and stops the training when the trial is
/// to end or belongs to somebody else.
class Heartbeat {
 public:
  Heartbeat(store::StudyStore& store, const Claim& claim, const LeaseClock& clock,
            milliseconds period, const std::stop_token& worker_stop)
      : store_(store),
        claim_(claim),
        clock_(clock),
        period_(period),
        worker_stopped_(worker_stop, OnStop{this}),
        thread_([this](const std::stop_token& end) { beat(end); }) {}
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat() = default;

  std::stop_token training_stop() const { return training_.get_token(); }
  Interruption interruption() const { return interruption_; }
  /// What the store hears with the next beat.
  void say(std::string progress) {
    const std::scoped_lock lock(mutex_);
    progress_ = std::move(progress);
  }
  void interrupt(Interruption why) {
    auto none = Interruption::none;
    interruption_.compare_exchange_strong(none, why);
    training_.request_stop();
  }

 private:
  struct OnStop {
    Heartbeat* heartbeat;
    void operator()() const { heartbeat->interrupt(Interruption::worker_stopped); }
  };

  void beat(const std::stop_token& end) {
    while (sleep_unless_stopped(period_, end)) {
      // A store that refuses refuses others, too: nobody takes the trial meanwhile.
      const auto hold = store_.renew(claim_, clock_.end_of_lease(), progress());
      if (!hold && store::cannot_come_back(hold.error())) interrupt(Interruption::worker_stopped);
      if (!hold) continue;
      if (*hold == Hold::stop_requested) interrupt(Interruption::stop_requested);
      if (*hold == Hold::lost) interrupt(Interruption::lost);
    }
  }

  std::string progress() {
    const std::scoped_lock lock(mutex_);
    return progress_;
  }

  store::StudyStore& store_;
  const Claim& claim_;
  const LeaseClock& clock_;
  milliseconds period_;
  std::mutex mutex_;
  std::string progress_;
  std::stop_source training_;
  std::atomic<Interruption> interruption_ = Interruption::none;
  std::stop_callback<OnStop> worker_stopped_;
  std::jthread thread_;
};

std::string progress_text(const EpochReport& epoch) {
  auto text = fmt::format("epoch {}", epoch.epoch);
  if (epoch.accuracy) text += fmt::format(", accuracy {:.4f}", *epoch.accuracy);
  if (epoch.loss) text += fmt::format(", loss {:.4f}", *epoch.loss);
  return text;
}

bool is_full(const std::filesystem::path& folder) {
  constexpr std::uintmax_t kFull = std::uintmax_t{1} << 20;
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  return !error && space.available < kFull;
}

bool holds_nothing(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator first(folder, error);
  return error || first == std::filesystem::directory_iterator{};
}

/// The numbers of a level that a trial has ended.
store::LevelRecord level_record(std::int64_t level, const Budget& budget,
                                const TrialOutcome& outcome) {
  auto metrics = nlohmann::json::object();
  for (const auto& [name, value] : outcome.other) metrics[name] = value;
  auto epochs = nlohmann::json::array();
  double last = 0;  // stands for one that an epoch does not report
  for (const auto& epoch : outcome.epochs) {
    last = epoch.accuracy.value_or(last);
    epochs.push_back(last);
  }
  return {.level = level,
          .epochs = budget.epochs,
          .data_fraction = budget.data_fraction,
          .accuracy = outcome.accuracy,
          .loss = outcome.loss,
          .training_s = outcome.elapsed_s,
          .metrics = core::format_json_line(metrics),
          .epoch_values = core::format_json_line(epochs)};
}

class Worker {
 public:
  Worker(store::StudyStore& store, const Study& study, const core::Clock& clock,
         const WorkerOptions& options, const WorkerHooks& hooks, const std::stop_token& stop)
      : store_(store),
        study_(study),
        options_(options),
        hooks_(hooks),
        stop_(stop),
        clock_(clock, options.lease),
        levels_(levels(study.budget)),
        patience_(hooks.say, stop, {.most = options.store_patience}),
        meter_(clock) {}

  Status work() {
    constexpr milliseconds kLong{100};  // only then it is asked whether the study is done
    auto pause = pause_between_questions(store_);
    auto idle_since = clock_.now();
    while (!stop_.stop_requested()) {
      auto claimed = patience_.keep_trying([&] {
        return store_.claim_trial(study_.name, options_.name, clock_.run_out_before(),
                                  clock_.end_of_lease());
      });
      if (!claimed) return unless_stopped(std::move(claimed.error()));
      if (*claimed) {
        pause.something_happened();
        if (auto ran = run(**claimed); !ran) return unless_stopped(std::move(ran.error()));
        idle_since = clock_.now();
        continue;
      }
      if (pause.next() >= kLong) {
        const auto done = is_done();
        if (!done) return unless_stopped(done.error());
        if (*done) return {};
      }
      if (options_.idle_limit && clock_.now() - idle_since > *options_.idle_limit) return {};
      store_.wait_for_news(study_.name, store::News::queued, pause.take(), stop_);
    }
    return {};
  }

 private:
  Status unless_stopped(Error error) const {
    if (stop_.stop_requested()) return {};
    return tl::unexpected(std::move(error));
  }

  Result<bool> is_done() {
    FLEETFIT_ASSIGN(const auto record,
                    patience_.keep_trying([&] { return store_.find_study(study_.name); }));
    if (!record)
      return fail(ErrorCode::not_found, fmt::format("there is no study '{}'", study_.name));
    return record->done;
  }

  TrialJob job_of(const TrialRecord& trial) const {
    const auto folder = options_.folder / std::to_string(trial.number);
    return {.command = options_.command,
            .study = study_.name,
            .trial = static_cast<std::size_t>(trial.number),
            .params = trial.params,
            .budget = levels_[static_cast<std::size_t>(trial.level)],
            .checkpoint_folder = folder,
            .resume = !trial.levels.empty() || !holds_nothing(folder),
            .timeout_s = study_.workload.timeout_s,
            .memory_bytes = study_.workload.memory_bytes,
            .cores = options_.cores,
            .log = folder.string() + ".log",
            .seed = core::mix(study_.seed, static_cast<std::uint64_t>(trial.number)) >> 33,
            .attempt = trial.attempts,
            .worker = options_.name};
  }

  /// Fails only if the store does.
  Status run(const TrialRecord& trial) {
    const Claim claim{.study = study_.name,
                      .trial = trial.number,
                      .worker = options_.name,
                      .attempt = trial.attempts};
    if (trial.stop_requested) return give_up(claim, TrialState::stopped, "");
    if (trial.level < 0 || static_cast<std::size_t>(trial.level) >= levels_.size())
      return give_up(claim, TrialState::failed,
                     fmt::format("its budget has no level {}", trial.level));
    const auto deaths = trial.attempts - static_cast<std::int64_t>(trial.levels.size()) - 1;
    if (deaths >= options_.max_deaths)
      return give_up(claim, TrialState::failed,
                     fmt::format("its workers have died {} times while they ran it", deaths));

    known_structure_ = trial.structure;
    const auto started = clock_.date();
    Heartbeat heartbeat(store_, claim, clock_, std::min(options_.lease / 3, milliseconds(1000)),
                        stop_);
    const TrialListener listener{
        .on_epoch = [&](const EpochReport& epoch) { heartbeat.say(progress_text(epoch)); },
        .on_model =
            [&](const std::string& file) { static_cast<void>(save_structure(claim, file)); },
        .on_progress = [&](const std::string& text) { heartbeat.say(text); }};
    meter_.start();
    const auto outcome =
        run_trial(job_of(trial), listener, heartbeat.training_stop(), options_.process);
    if (heartbeat.interruption() == Interruption::lost) return {};
    if (!outcome) return put_off(claim, outcome.error());
    if (outcome->end == TrialOutcome::End::failed && is_full(options_.folder))
      return put_off(claim, {ErrorCode::io, "the disk is full"});
    if (outcome->end == TrialOutcome::End::failed && is_ended_with_us(*outcome))
      return give_back(claim);
    return end(claim, trial, *outcome, heartbeat.interruption(), started);
  }

  // A cluster ends all processes of a job, the trial perhaps before its worker.
  bool is_ended_with_us(const TrialOutcome& outcome) const {
    constexpr milliseconds kApart{1000};
    if (outcome.was_told_to_end) sleep_unless_stopped(kApart, stop_);
    return stop_.stop_requested();
  }

  Status end(const Claim& claim, const TrialRecord& trial, const TrialOutcome& outcome,
             Interruption interruption, store::Time started) {
    switch (outcome.end) {
      case TrialOutcome::End::finished:
        return end_level(claim, trial, outcome, started);
      case TrialOutcome::End::stopped:
        return interruption == Interruption::stop_requested
                   ? give_up(claim, TrialState::stopped, "")
                   : give_back(claim);
      case TrialOutcome::End::failed:
        break;
    }
    return give_up(claim, TrialState::failed, outcome.reason);
  }

  Status end_level(const Claim& claim, const TrialRecord& trial, const TrialOutcome& outcome,
                   store::Time started) {
    if (study_.inference && known_structure_.empty()) {
      const auto found = save_structure(claim, outcome.model_file);
      if (!found) return give_up(claim, TrialState::failed, found.error().message);
    }
    auto level = level_record(trial.level, levels_[static_cast<std::size_t>(trial.level)], outcome);
    level.training_j = meter_.stop(outcome.cpu_s).joules;
    level.worker = options_.name;
    level.started = started;
    level.ended = std::max(started, clock_.date());
    const auto& model = outcome.model_file.empty() ? trial.model_file : outcome.model_file;
    const auto held = patience_.keep_trying([&] { return store_.end_level(claim, level, model); });
    if (!held && held.error().code == ErrorCode::invalid_input)
      return give_up(claim, TrialState::failed, held.error().message);
    return written(held);
  }

  /// Fails if the model names no structure, for which the trial is to blame.
  Status save_structure(const Claim& claim, const std::string& model) {
    if (!hooks_.structure_of) return {};
    if (model.empty())
      return core::refuse("its result names no model, which inference is to be tuned for");
    FLEETFIT_ASSIGN(auto structure, hooks_.structure_of(model));
    FLEETFIT_TRY(
        patience_.keep_trying([&] { return store_.save_structure(claim, structure, model); }));
    known_structure_ = std::move(structure);
    return {};
  }

  /// The folder cannot be written: what is to blame is not the trial.
  Status put_off(const Claim& claim, const Error& error) {
    if (error.code == ErrorCode::invalid_input)
      return give_up(claim, TrialState::failed, error.message);
    FLEETFIT_TRY(give_back(claim));
    if (error.code == ErrorCode::cancelled) return {};
    constexpr milliseconds kPause{2000};
    if (hooks_.say && !said_folder_)
      hooks_.say(fmt::format("waiting until trials can be run again: {}", error.message));
    said_folder_ = true;
    sleep_unless_stopped(kPause, stop_);
    return {};
  }

  Status give_up(const Claim& claim, TrialState state, const std::string& reason) {
    return written(patience_.keep_trying([&] { return store_.give_up(claim, state, reason); }));
  }

  Status give_back(const Claim& claim) {
    return written(patience_.keep_trying([&] { return store_.give_back(claim); }));
  }

  static Status written(const Result<Hold>& held) {
    FLEETFIT_TRY(held);
    return {};
  }

  store::StudyStore& store_;
  const Study& study_;
  const WorkerOptions& options_;
  const WorkerHooks& hooks_;
  std::stop_token stop_;
  LeaseClock clock_;
  std::vector<Budget> levels_;
  Patience patience_;
  TrainingMeter meter_;
  std::string known_structure_;
  bool said_folder_ = false;
};

}  // namespace

LeaseClock::LeaseClock(const core::Clock& clock, milliseconds lease)
    : clock_(clock), lease_(lease), last_now_(clock.now()), last_date_(clock.date()) {}

store::Time LeaseClock::run_out_before() {
  const auto now = clock_.now();
  const auto date = clock_.date();
  const auto jump = (date - last_date_) - (now - last_now_);
  last_now_ = now;
  last_date_ = date;
  // Others will renew their leases by the new date before they count again.
  if (std::chrono::abs(jump) > lease_ / 2) quiet_until_ = now + 2 * lease_;
  if (now < quiet_until_) return store::Time{};
  return std::chrono::floor<milliseconds>(date) - lease_;
}

store::Time LeaseClock::end_of_lease() const { return date() + lease_; }

store::Time LeaseClock::date() const { return std::chrono::floor<milliseconds>(clock_.date()); }

Status work_on_study(store::StudyStore& store, const Study& study, const core::Clock& clock,
                     const WorkerOptions& options, const WorkerHooks& hooks,
                     const std::stop_token& stop) {
  return Worker(store, study, clock, options, hooks, stop).work();
}

}  // namespace fleetfit::tune
