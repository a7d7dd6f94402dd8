#pragma once

#include <optional>
#include <stop_token>

#include "fleetfit/predict/regressor.h"

namespace fleetfit::predict {

struct MlpOptions {
  std::optional<double> budget_s = {};  ///< for each fit; none: as long as it takes
  std::optional<int> trials = {};       ///< settings to try; none: what fleetfit-train thinks best
  std::stop_token stop = {};            ///< the best network so far is then taken
};

/// A fit by a multi-layer perceptron, which the program `fleetfit-train` beside the running one
/// does; fails with `not_found` if it is not installed. Safe to call from many threads.
FitRegressor fit_mlp(MlpOptions options);

}  // namespace fleetfit::predict
