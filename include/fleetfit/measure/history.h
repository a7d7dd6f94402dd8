#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/statistics.h"
#include "fleetfit/measure/measurement.h"

/// What earlier measurements on a device say about a new one. The runs of one session tell how much
/// runs differ, not how much sessions do: pages lie elsewhere in memory, neighbours on a shared
/// machine come and go. So a median's interval is widened by how much medians of the same model
/// were seen to differ from session to session.
namespace fleetfit::measure {

/// A measurement that was taken before on the same device.
struct EarlierMeasurement {
  std::string model = {};  ///< anything that differs between models, such as a hash
  double median_ms = 0;
  core::Interval ci95_ms = {};
  std::chrono::system_clock::time_point started = {};
};

/// How much medians differ between sessions on a device.
struct SessionSpread {
  double relative = 0.025;  ///< standard deviation of a median's logarithm
  double freedom = 8;       ///< how many differences this is worth: degrees of freedom

  bool operator==(const SessionSpread&) const = default;
};

/// From the models that were measured more than once. The default of `SessionSpread` counts as 8
/// differences seen, so it fades as a device's own history grows; without one it is what is
/// returned. It was seen on a virtual machine with neighbours (docs/measuring.md).
SessionSpread session_spread(std::span<const EarlierMeasurement> earlier);

/// Widens the interval of the measurement's median, as found in this session, by the spread between
/// sessions. If it is `ok` and its interval then does not meet that of each of the last three
/// measurements of the same model, it is `unstable`, and the reason names the one that it is
/// unlike; so a device that has changed for good is `ok` again after three. `earlier` has the
/// newest first. Nothing changes for a measurement without numbers.
void compare_with_history(Measurement& measurement, std::string_view model,
                          std::span<const EarlierMeasurement> earlier, const SessionSpread& spread);

}  // namespace fleetfit::measure
