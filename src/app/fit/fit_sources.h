#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "app/fit/fit_folder.h"
#include "app/fit/probers.h"
#include "fleetfit/app/fitting.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/fit/source.h"

/// What a fit works on: its designs, and the devices that they are measured on, of this machine or
/// of a fleet's server.
namespace fleetfit::app {

/// What the sources of a fit work with. Borrows everything; a source must not outlive it.
struct FitPlace {
  Workplace& workplace;
  const fit::Fleet& fleet;
  const FitRequest& request;
  core::Progress& progress;
  std::stop_token stop = {};
};

/// The subnets of one model that is made elastic, which takes long if it was not done before. What
/// each device gets is written into the folder.
Result<std::unique_ptr<fit::FitSource>> open_subnet_source(const FitPlace& place);

/// The designs of a space, whose known devices are columns of a table. Writes nothing.
Result<std::unique_ptr<fit::FitSource>> open_design_source(const FitPlace& place);

/// The agent of the fleet's server that measures there; "" if none does.
std::string agent_of(const fit::FleetDevice& written);

/// Measures on a device of this machine or by an agent, as the fleet file says it. The count is
/// borrowed.
Result<std::unique_ptr<fit::Prober>> make_prober(const FitPlace& place, const NamedSpace& space,
                                                 const fit::OpenedDevice& device,
                                                 ProbeCount& count);

/// A device of this machine that the fleet file describes becomes a device of the workplace, under
/// a name of the fleet's own.
Result<fit::OpenedDevice> open_subnet_device(const FitPlace& place, std::size_t number,
                                             const fit::FleetDevice& written);

/// Measures subnets on a device. The seconds that this takes are kept in the folder as the step
/// "measuring NAME". The folder is borrowed.
Result<std::unique_ptr<fit::Prober>> make_subnet_prober(const FitPlace& place,
                                                        const NamedSpace& space,
                                                        const fit::OpenedDevice& device,
                                                        FitFolder& folder);

/// The name of that step.
std::string measuring_step(const fit::OpenedDevice& device);

}  // namespace fleetfit::app
