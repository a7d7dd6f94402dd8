#pragma once

#include <string>

#include "fleetfit/app/searching.h"

namespace fleetfit::app {

/// A page of HTML: accuracy against the first cost, with what each point is under the pointer, and
/// all points as a table.
std::string pareto_page(const SearchReport& report);

/// The same for what was measured on a device, step by step.
std::string bisection_page(const BisectReport& report);

}  // namespace fleetfit::app
