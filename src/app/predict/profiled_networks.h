#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/devices/opened_device.h"
#include "fleetfit/app/predicting.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/store/records.h"

namespace fleetfit::app {

/// Which networks are wanted from a device, and how those are measured that it does not know yet.
struct ProfileRequest {
  const std::string& device;
  const NetworkChoice& networks;
  std::size_t first = 0;  ///< number of the first design of a space
  const measure::Protocol& protocol;
  int threads = 1;
  bool stored = false;  ///< those alone that it knows: nothing is measured
};

/// A network with the profile that was taken of it.
struct ProfiledNetwork {
  std::string name = {};
  std::string hash = {};
  std::optional<std::size_t> design = std::nullopt;  ///< its number, if it is one of a space
  graph::Graph graph = {};                           ///< as it was run
  store::MeasurementRecord record = {};
};

/// Sees to it that the networks were profiled on the device, and hands each to `take`, in order;
/// one that cannot be used to `leave_out`, with the reason. Fails with `cancelled` when stopped.
struct ProfileReceiver {
  std::function<Status(const ProfiledNetwork&)> take;
  std::function<void(std::string)> leave_out;
};
Status profile_networks(Workplace& workplace, const ProfileRequest& request,
                        const ProfileReceiver& receiver, core::Progress& progress,
                        const std::stop_token& stop);

}  // namespace fleetfit::app
