#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "fleetfit/tune/sampler.h"

namespace fleetfit::tune {

/// Observations on their way to the sampler, in the order in which levels ended. One whose values
/// are not known yet holds up those after it, so that a sampler that is told everything anew after
/// a crash is told it in the same order.
class ObservationQueue {
 public:
  /// A level has ended; its values come by `fill`, or it is dropped.
  void expect(std::int64_t order, std::size_t trial, std::size_t level);
  void fill(Observation observation);
  void drop(std::size_t trial, std::size_t level);

  /// Tells what can be told.
  void flush(Sampler& sampler);

 private:
  using Place = std::pair<std::int64_t, std::size_t>;  ///< order, then what came first

  std::map<Place, std::optional<Observation>> waiting_;
  std::map<std::pair<std::size_t, std::size_t>, Place> places_;  ///< by trial and level
  std::int64_t last_order_ = 0;
  std::size_t count_ = 0;
};

}  // namespace fleetfit::tune
