#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fleetfit/adapt/monitor.h"
#include "fleetfit/adapt/pool.h"
#include "fleetfit/core/names.h"

namespace fleetfit::adapt {

/// The most accurate entry that takes at most `limit_ms`, the quicker of two that are alike;
/// nothing if all take longer.
std::optional<std::size_t> best_within(std::span<const PoolEntry> entries, double limit_ms);

/// The entry that takes the least time. There is at least one.
std::size_t quickest(std::span<const PoolEntry> entries);

struct SwitchOptions {
  double margin = 0.05;            ///< share of the budget that a slower subnet has to leave free
  double up_after_ms = 500;        ///< how long there has to be room for it
  double min_interval_ms = 100;    ///< between two switches
  double nothing_fits_ms = 1000;   ///< after so long without a subnet that fits, search again
  double search_again_ms = 30000;  ///< between two such requests
  /// A switch to a slower subnet that is taken back within this time was a mistake: it is not tried
  /// again for as long, then for twice as long, and so on, unless conditions get better.
  double taken_back_ms = 1000;
  double longest_wait_ms = 30000;
  /// How much more seldom than the budget allows interruptions have to be, for a switch down and
  /// up.
  double caution_down = 0.2;
  double caution_up = 0.3;
  /// Runs may be slow for another reason than that the CPU was taken away: so long after the last
  /// switch, interruptions no longer speak against a slower subnet.
  double dare_after_ms = 5000;
};

enum class SwitchReason : std::uint8_t {
  over_budget,   ///< a quicker one is needed
  room,          ///< a more accurate one fits
  nothing_fits,  ///< none fits, so the quickest
};
/// "over budget", "room", "nothing fits".
core::Names names_of(SwitchReason);
using core::to_string;

struct SwitchDecision {
  std::optional<std::size_t> target = std::nullopt;  ///< nothing: stay
  SwitchReason reason = SwitchReason::over_budget;
  bool fits = true;           ///< whether any subnet fits
  bool search_again = false;  ///< none has fitted for a while
};

/// Decides when to run which subnet of a pool. Down at once when the budget is exceeded, up when
/// there has been room for a while. Knows nothing of clocks and programs: the caller does the
/// switch and reports that it is done. Belongs to one thread at a time.
class SwitchPolicy {
 public:
  /// There is at least one entry.
  SwitchPolicy(std::vector<PoolEntry> entries, double budget_ms, const SwitchOptions& options = {});

  /// The most accurate one that fits as estimated, or else the quickest.
  std::size_t start() const;

  /// What to do while `current` runs under these conditions. A decision to switch is repeated until
  /// `switched` is called. Time never goes back.
  SwitchDecision decide(double now_ms, const Conditions& conditions, std::size_t current);

  /// The switch was made.
  void switched(double now_ms, std::size_t from, std::size_t to);

  std::span<const PoolEntry> entries() const { return entries_; }
  double budget_ms() const { return budget_ms_; }

 private:
  /// A switch up that may turn out to be a mistake, or did so.
  struct Climb {
    double time_ms;
    double ratio;
    std::size_t target;
  };

  SwitchDecision down(const Conditions& conditions, std::size_t current) const;
  std::optional<std::size_t> up(double now_ms, const Conditions& conditions, std::size_t current);
  void look_for_room(double now_ms, const Conditions& conditions, std::size_t current);
  double room_for_up(double now_ms, const Conditions& conditions) const;
  std::optional<std::size_t> best_with_room_for(double duration_ms, double now_ms) const;
  void forget_room();
  bool is_blocked(double now_ms, double ratio, std::size_t target) const;
  bool ask_for_search(double now_ms, bool fits);

  std::vector<PoolEntry> entries_;
  double budget_ms_;
  SwitchOptions options_;
  std::optional<double> last_switch_ms_;
  double last_ratio_ = 1;
  std::vector<std::optional<double>> room_since_ms_;  // of each entry that is better
  std::optional<Climb> climb_;
  std::optional<Climb> mistake_;
  double wait_ms_;
  double blocked_until_ms_ = 0;
  std::optional<double> misfit_since_ms_;
  std::optional<double> last_search_ms_;
};

}  // namespace fleetfit::adapt
