#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/adapt/serving.h"

namespace fleetfit::adapt {

/// One request that was served.
struct ServedRequest {
  double time_s = 0;  ///< never before the last one
  double ratio = 1;   ///< actual / estimated latency
  bool within_budget = false;
  std::optional<bool> right = std::nullopt;  ///< if its label is known
  double accuracy = 0;                       ///< of its subnet, as the pool says
  std::string subnet = {};
};

/// Parts the time of serving at changes of load: where requests take lastingly longer or shorter,
/// relative to what was estimated, than before. Looks back over half a second; keeps the last
/// hundred phases, and the totals of all. Belongs to one thread at a time.
class LoadPhases {
 public:
  void record(const ServedRequest& request);

  /// All phases so far, what was served last included.
  LoadReport report() const;

 private:
  /// The requests of a tenth of a second.
  struct Bin {
    std::int64_t number = 0;  // since serving began
    std::vector<double> ratios;
    LoadPhase counts;  // all requests; those of the first second are split off later
  };

  void close_bin();
  std::optional<std::size_t> find_change() const;
  void settle_oldest();
  void begin_phase(std::int64_t bin);

  std::optional<Bin> open_;
  std::deque<Bin> pending_;     // closed, and not yet known to be of which phase
  std::deque<double> history_;  // ratios of the phase's last bins
  std::int64_t phase_begin_ = 0;
  LoadReport report_;  // its last phase is the current one
};

}  // namespace fleetfit::adapt
