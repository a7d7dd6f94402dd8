#include "adapt/latency_sample.h"

#include "fleetfit/core/statistics.h"

namespace fleetfit::adapt {

double LatencySample::quantile(double share) const {
  return core::quantile(sample_, share).value_or(0);
}

}  // namespace fleetfit::adapt
