#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/fleet/messages.h"
#include "fleetfit/store/fleet_store.h"
#include "server/api_state.h"

namespace fleetfit::server {

/// Keeps what a device has found, in the same order. What `measure` jobs have measured is kept as
/// measurements; a result that makes no sense is a failed job. The same outcome again changes
/// nothing, but makes good what a server that was killed in between has left undone.
Result<std::vector<store::Ended>> keep_results(ApiState& state, const std::string& device,
                                               std::span<const fleet::Outcome> outcomes,
                                               store::Time now);

}  // namespace fleetfit::server
