#pragma once

#include <optional>
#include <stop_token>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/fit/report.h"
#include "fleetfit/fit/source.h"

namespace fleetfit::fit {

struct FitOptions {
  /// Also find the fewest models that serve all devices, each within so many points of accuracy of
  /// its own best; instead of what the fleet says.
  std::optional<double> share_within = std::nullopt;
};

/// What hears how it goes. Clock and progress are borrowed.
struct FitRun {
  const core::Clock& clock;
  core::Progress& progress;
  std::stop_token stop = {};
};

/// Fits all devices of a fleet: opens them, learns from a few measurements on each, searches
/// designs, confirms candidates on each, shares models if that is wanted, and tests what was
/// chosen.
///
/// A device that cannot keep its budgets, fails or waits has that state in the report; it is no
/// failure. Fails as the source does, with the place of the device in the fleet file, and with
/// `cancelled` when stopped.
Result<FitReport> fit_devices(const Fleet& fleet, FitSource& source, const FitOptions& options,
                              const FitRun& run);

}  // namespace fleetfit::fit
