#pragma once

#include <span>

#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"

namespace fleetfit::space {

/// Gives each design of a batch a number: latency, energy, memory or accuracy. A table, a
/// predictor, an adapted proxy, a device and a function in a test are all the same thing to a
/// search.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// One number for each design, in order, into `out`, which has room for just that; NaN where
  /// nothing is known about a design. Safe to call from many threads.
  virtual Status evaluate(DesignBatch designs, std::span<double> out) const = 0;
};

}  // namespace fleetfit::space
