#pragma once

#include "fleetfit/tune/study.h"

namespace fleetfit::tune {

/// Whether it is a number of inference on a device alone.
constexpr bool is_of_inference(Metric metric) {
  return metric == Metric::latency || metric == Metric::throughput || metric == Metric::energy;
}

/// Whether it is the paper's, of training and inference together.
constexpr bool is_ratio(Metric metric) {
  return metric == Metric::ratio_of_time || metric == Metric::ratio_of_energy;
}

}  // namespace fleetfit::tune
