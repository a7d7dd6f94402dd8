#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::adapt {

struct MonitorOptions {
  double quantile = 0.5;         ///< the latency that is held against a budget: 0.5 is the median
  double window_ms = 400;        ///< runs that ended longer ago are forgotten …
  std::size_t fewest_runs = 16;  ///< … as long as so many are left, and enough for the tail
  std::size_t most_runs = 4096;
  std::size_t first_runs = 8;  ///< nothing is reported before so many runs
  /// Factor beyond which new runs count as a change of conditions rather than as noise.
  double jump = 1.1;
};

/// How networks run at the moment, compared with how long they are estimated to take. A load can
/// make all runs slower, and it can take the CPU away from some of them for a while, which hits
/// networks the more often the longer they compute.
struct Conditions {
  double ratio = 1;            ///< actual / estimated latency: its median or tail
  double calm_ratio = ratio;   ///< the same of runs that were not interrupted
  double interruptions = 0;    ///< for each millisecond of estimated latency
  double interruption_ms = 0;  ///< how long the longest took
  double rare = 1;  ///< the share of interrupted runs that does not show: 0.05 if p95 is watched

  /// The longest estimate of a network that will keep to `limit_ms`. `caution`, from 0 to 1, is for
  /// interruptions to come that are more frequent.
  double longest_within(double limit_ms, double caution = 0) const;
};

/// "median", "p95", "p99" or another percentile such as "p90.5" as a share; `invalid_input` for
/// another text.
Result<double> parse_tail(std::string_view text);

/// How much slower (or quicker) than estimated networks run at the moment: r = actual / estimated
/// latency, its median or a tail over the last runs. Each run counts relative to the estimate of
/// the network that ran, so that what was learned on one holds for the next. When conditions
/// clearly change, the runs before the change are forgotten at once. Has no clock; belongs to one
/// thread at a time.
class LatencyMonitor {
 public:
  explicit LatencyMonitor(const MonitorOptions& options = {});

  /// A run that ended at `time_ms` (never before the last one). What is not a positive number is
  /// left out.
  void record(double time_ms, double actual_ms, double estimated_ms);

  /// Nothing until enough is known.
  const std::optional<Conditions>& conditions() const { return conditions_; }

  /// How many runs the ratio is of.
  std::size_t runs() const { return window_.size(); }

 private:
  struct Run {
    double time_ms;
    double estimated_ms;
    double ratio;
  };
  struct ChangeTest {
    std::size_t runs;
    std::size_t slower;  // so many of them above the ratio are no accident
    std::size_t faster;  // or below
  };

  void forget_old_runs(double time_ms);
  bool forget_runs_before_change();
  bool shows_change(const ChangeTest& test) const;
  Conditions conditions_of_window() const;

  MonitorOptions options_;
  std::vector<ChangeTest> tests_;
  std::deque<Run> window_;
  std::optional<Conditions> conditions_;
  std::size_t runs_since_ = 0;  // conditions were worked out
};

}  // namespace fleetfit::adapt
