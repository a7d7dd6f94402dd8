#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/fit/report.h"

/// Use case: the whole way from a fleet file to a fitted model for each of its devices.
/// docs/fitting.md describes it, docs/formats/fleet.md has the files.
namespace fleetfit::app {

struct FitRequest {
  std::filesystem::path fleet = {};   ///< the fleet file
  std::filesystem::path output = {};  ///< the folder to write; what is in it is used again
  /// Also find the fewest models that serve all devices, each within so many points of accuracy of
  /// its own best; instead of what the file says.
  std::optional<double> share_within = std::nullopt;
  std::uint64_t seed = 1;
  int threads = 1;
};

/// Fits all devices of a fleet and writes folder and report. What was measured is kept in the store
/// at once, and steps that take long are kept in the folder: work that was stopped or killed goes
/// on where it was and comes to the same result.
///
/// A device that cannot keep its budgets, fails or waits has that state in the report; it is no
/// failure. Fails with `invalid_input`, naming file, line and key, on a fleet file that makes no
/// sense, as reading the files that it names does, and with `cancelled` when stopped.
Result<fit::FitReport> fit_fleet(Workplace& workplace, const FitRequest& request,
                                 core::Progress& progress, const std::stop_token& stop);

}  // namespace fleetfit::app
