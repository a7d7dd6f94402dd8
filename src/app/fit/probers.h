#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "app/measure/measuring_designs.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/fit/source.h"
#include "fleetfit/fleet/client.h"
#include "fleetfit/fleet/messages.h"
#include "fleetfit/measure/protocol.h"
#include "fleetfit/space/table.h"

/// Where a fit gets its measurements.
namespace fleetfit::app {

/// Counts what a prober does.
struct ProbeCount {
  std::size_t made = 0;   ///< now; the store knew the others
  std::size_t asked = 0;  ///< in all
  double seconds = 0;     ///< for those that were made now
};

/// What probers work with. Borrows everything.
struct ProbePlace {
  Workplace& workplace;
  core::Progress& progress;
  std::stop_token stop = {};
};

/// A column of tables, one table for each budget, looked up cell by cell. What was looked up is a
/// measurement in the store from then on, and the store is asked first: a table that somebody has
/// changed is another device. Empty cells have to be measured by others.
struct LookedUp {
  NamedSpace space;
  std::string device;  ///< its name
  std::vector<fit::FitBudget> budgets;
  std::vector<std::unique_ptr<const space::Source>> cells = {};  ///< by budget
  std::string table = {};                                        ///< for people
  std::string fingerprint = {};                                  ///< of the tables and the column
};
std::unique_ptr<fit::Prober> make_table_prober(const ProbePlace& place, LookedUp from);

/// A device of this machine.
struct MeasuredHere {
  NamedSpace space;
  std::string device;  ///< of the workplace
  std::vector<fit::FitBudget> budgets;
  measure::Protocol protocol = {};
  int threads = 1;
};
std::unique_ptr<fit::Prober> make_device_prober(const ProbePlace& place, MeasuredHere from,
                                                ProbeCount& count);

/// What a measurement says of the budgets' costs.
fit::Probe probe_of(const store::MeasurementRecord& record,
                    const std::vector<fit::FitBudget>& budgets);

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
