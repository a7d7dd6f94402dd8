#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "tune/scheduler.h"

namespace fleetfit::tune {

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
