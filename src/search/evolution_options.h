#pragma once

#include "fleetfit/search/strategy.h"

namespace fleetfit::search {

/// Fails with `invalid_input`, naming the option.
Status check(const EvolutionOptions& options);

}  // namespace fleetfit::search
