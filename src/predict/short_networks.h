#pragma once

#include <span>
#include <vector>

#include "fleetfit/predict/operator_predictor.h"

namespace fleetfit::predict {

/// Latencies of networks as models predict them that did not see the network, and as they were
/// measured, each network with its fold of cross-validation.
struct HeldOutNetworks {
  std::span<const double> predicted_ms;
  std::span<const double> measured_ms;
  std::span<const int> fold;
  int folds = 0;
};

struct FittedShortNetworks {
  ShortNetworks law;
  /// Of each network, by a law that was fitted without its fold: what later networks will get is
  /// as good as these, not as good as what the law says of those that it was fitted to.
  std::vector<double> held_out_factor;
};

/// How much faster the kernels of short networks are. No law, and factors of 1, where they are not
/// or where networks are too few to tell.
FittedShortNetworks fit_short_networks(const HeldOutNetworks& networks);

}  // namespace fleetfit::predict
