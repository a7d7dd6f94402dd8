#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "app/measure/measuring_designs.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/fit/source.h"
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

}  // namespace fleetfit::app
