#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fleetfit/tune/history.h"
#include "fleetfit/tune/study.h"
#include "fleetfit/tune/tuner.h"

/// Which trials go on. Schedulers know levels only, whatever a level's budget is.
namespace fleetfit::tune {

/// A trial at the end of a level.
struct Standing {
  std::size_t trial = 0;
  std::vector<double> values = {};  ///< to be minimized
  double violation = 0;             ///< of the study's limits
};

/// Of trials with one objective: those that break limits come last, the less they break them the
/// earlier; of equal ones the older.
bool is_before(const Standing& a, const Standing& b);

/// Indices, best first. Several objectives: by non-dominated sets, in a set the lonelier first; of
/// equal ones the older. Depends on what there is, not on its order.
std::vector<std::size_t> ranking(std::span<const Standing> standings);

/// What schedulers know of a trial. Unless it has ended or waits to be judged, it is in a queue or
/// with a worker.
struct TrialStatus {
  std::size_t bracket = 0;
  std::size_t level = 0;
  TrialState state = TrialState::queued;
  std::size_t judged_levels = 0;  ///< the highest level with known values, and 1

  bool ended() const { return has_ended(state); }
  /// It has done all it can at its level.
  bool waits() const { return state == TrialState::paused && judged_levels > level; }
  bool waits_at(std::size_t at) const { return waits() && level == at; }
};

struct SchedulerOptions {
  SchedulerKind kind = SchedulerKind::none;
  std::size_t levels = 1;
  std::size_t objectives = 1;
  double eta = 2;
  std::size_t max_trials = 1;
  std::size_t grace_epochs = 1;  ///< median: nothing is stopped before
};

/// Its decisions are a function of the present states of all trials. Ends of trials that waited at
/// the highest level are not its business.
class Scheduler {
 public:
  struct Place {
    std::size_t bracket = 0;
    std::size_t level = 0;
  };
  using Trials = std::vector<TrialStatus>;

  virtual ~Scheduler() = default;

  /// Where the trial of that number begins.
  virtual Place first_place(std::size_t number) = 0;

  /// A trial has values at the end of a level. Lowest levels first, before `changed`.
  virtual void judged(const Standing& standing, std::size_t bracket, std::size_t level) = 0;
  /// What is known of a trial is another than before; nothing of one that is new. `all` has it.
  virtual void changed(const Trial& trial, const std::optional<TrialStatus>& before,
                       const TrialStatus& now) = 0;

  virtual std::optional<End> next_end(const Trials& all) = 0;
  virtual std::optional<Promote> next_promotion(const Trials& all) = 0;
};

std::unique_ptr<Scheduler> make_scheduler(const SchedulerOptions& options);

std::unique_ptr<Scheduler> make_halving(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_asha(const SchedulerOptions& options);

/// A rung that never waits to be full: at any time, the best 1/eta of those that have been judged
/// in it may go on. Which ones depends on who has been judged and who waits, not on the order in
/// which it came about.
class AsyncRung {
 public:
  virtual ~AsyncRung() = default;

  virtual void add(const Standing& standing) = 0;
  /// A trial that was added waits to go on, or does so no more.
  virtual void wait(std::size_t trial) = 0;
  virtual void leave(std::size_t trial) = 0;

  /// The best of those that wait and may go on.
  virtual std::optional<std::size_t> promotable() const = 0;
  /// The best of those that wait.
  virtual std::optional<std::size_t> best_waiting() const = 0;
};

/// Exact, each call in logarithmic time.
std::unique_ptr<AsyncRung> make_sorted_rung(double eta);

/// Of several objectives: trials of neighbouring numbers, `cohort` of them, compete with each
/// other, so that sorting does not take longer the more trials there are.
std::unique_ptr<AsyncRung> make_cohort_rung(double eta, std::size_t cohort);

}  // namespace fleetfit::tune
