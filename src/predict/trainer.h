#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::predict {

/// Has fleetfit-train do a piece of work; `not_found` if it is not installed. One that was stopped
/// has written what it had by then, if anything.
Status run_trainer(const std::vector<std::string>& arguments, const std::stop_token& stop);

}  // namespace fleetfit::predict
