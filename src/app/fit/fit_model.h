#pragma once

#include <stop_token>

#include "app/fit/fleet_file.h"
#include "fleetfit/app/fitting.h"

namespace fleetfit::app {

/// Fits a fleet whose designs are the subnets of one model that is made elastic. Fills in the
/// report, and writes what each device gets into the folder.
Status fit_model_fleet(Workplace& workplace, const Fleet& fleet, const FitRequest& request,
                       core::Progress& progress, const std::stop_token& stop, FitReport& report);

}  // namespace fleetfit::app
