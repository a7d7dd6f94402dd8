#pragma once

#include <stop_token>

#include "app/fit/fleet_file.h"
#include "fleetfit/app/fitting.h"

namespace fleetfit::app {

/// Fits a fleet whose designs are those of a space, and whose known devices are columns of a table.
/// Fills in the report; writes nothing.
Status fit_space_fleet(Workplace& workplace, const Fleet& fleet, const FitRequest& request,
                       core::Progress& progress, const std::stop_token& stop, FitReport& report);

/// The budgets of a device as the file says them; limits that are shares are not known yet.
std::vector<FitBudget> budgets_of(const FleetDevice& device);

/// What went wrong with one device is told in its place; what ends the whole fit is an error.
Status settle(FittedDevice& device, Status status);

}  // namespace fleetfit::app
