#pragma once

#include <span>

#include "fleetfit/predict/operator_predictor.h"

namespace fleetfit::predict {

/// Latencies of networks as models foretold them that did not see the network, and as they were
/// measured, each network with its fold of cross-validation.
struct ForetoldNetworks {
  std::span<const double> foretold_ms;
  std::span<const double> measured_ms;
  std::span<const int> fold;
  int folds = 0;
};

/// How much faster the kernels of short networks are. Nothing unless networks that were held out
/// are foretold better with it.
ShortNetworks fit_short_networks(const ForetoldNetworks& networks);

}  // namespace fleetfit::predict
