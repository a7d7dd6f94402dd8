#pragma once

#include <optional>
#include <stop_token>

#include "fleetfit/predict/regressor.h"

namespace fleetfit::predict {

struct MlpOptions {
  std::optional<double> budget_s = {};  ///< for all sets; none: as long as it takes
  std::optional<int> trials = {};       ///< settings to try; none: what fleetfit-train thinks best
  std::stop_token stop = {};            ///< the best network so far is then taken
};

/// Fits multi-layer perceptrons, which the program `fleetfit-train` beside the running one does,
/// started once for all sets; fails with `not_found` if it is not installed and with `cancelled` if
/// it was stopped before each set had a network. Safe to call from many threads.
FitRegressors fit_mlp(MlpOptions options);

}  // namespace fleetfit::predict
