#pragma once

#include <memory>
#include <string>

#include "app/fit/agent_prober.h"
#include "app/fit/fit_folder.h"
#include "app/fit/fit_sources.h"

/// Devices that designs are measured on: of this machine, or of a fleet's server.
namespace fleetfit::app {

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
