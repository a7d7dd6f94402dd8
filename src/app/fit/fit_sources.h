#pragma once

#include <memory>
#include <stop_token>

#include "fleetfit/app/fitting.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/fit/source.h"

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

}  // namespace fleetfit::app
