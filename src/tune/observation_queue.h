#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "fleetfit/tune/sampler.h"

namespace fleetfit::tune {

/// Observations on their way to the sampler, in the order in which levels ended. One whose values
/// are not known yet holds up those after it, so that a sampler that hears everything again after
/// a crash hears it in the same order. Those whose order nobody counted (0) are passed on as soon
/// as they are known.
class ObservationQueue {
 public:
  /// A level has ended; its values come by `fill`, or it is dropped.
  void expect(std::int64_t order, std::size_t trial, std::size_t level);
  void fill(Observation observation);
  void drop(std::size_t trial, std::size_t level);

  /// Passes on what is known.
  void flush(Sampler& sampler);

 private:
  using Source = std::pair<std::size_t, std::size_t>;  ///< trial and level
  using Place = std::pair<std::int64_t, Source>;       ///< order first

  std::map<Place, std::optional<Observation>> waiting_;
  std::map<Source, std::int64_t> orders_;  ///< of what is expected
  std::vector<Observation> uncounted_;     ///< known
};

}  // namespace fleetfit::tune
