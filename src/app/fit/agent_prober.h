#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/fit/probers.h"
#include "fleetfit/fleet/client.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::app {

/// A device of a fleet's server: an agent measures there.
struct MeasuredByAgent {
  NamedSpace space;
  std::string agent;    ///< the device's name on the server
  std::string as = {};  ///< what these settings are called there; empty: the board as it is
  fleet::Settings settings = {};
  std::vector<fit::FitBudget> budgets;
  double max_time_s = 2;    ///< for each measurement
  double patience_s = 600;  ///< how long an agent that is away is waited for
};

/// The server that a fleet file names; nothing is sent yet. Fails with `invalid_input` if the file
/// names none, or its token cannot be used.
Result<std::unique_ptr<fleet::Client>> call_server(const fit::Fleet& fleet);

/// What the fleet's server knows of a device, in one line for people. Fails as `call_server` does,
/// and with `device_failed` if there is none of that name.
Result<std::string> describe_agent(const fit::Fleet& fleet, const std::string& agent);

/// Sends designs as models to the server and waits for their measurements, which are kept in the
/// store as well. A job that was asked for before is not done again. An agent that goes away is
/// waited for; then measuring fails with `device_failed`.
std::unique_ptr<fit::Prober> make_agent_prober(const ProbePlace& place, MeasuredByAgent from,
                                               std::unique_ptr<fleet::Client> client,
                                               ProbeCount& count);

}  // namespace fleetfit::app
