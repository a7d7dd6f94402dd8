#pragma once

#include <string>

#include "fleetfit/app/fitting.h"

namespace fleetfit::app {

/// A page of HTML: what each device gets, whether its budgets hold, what it would take to do
/// better, which models serve the whole fleet, and what it cost to find out.
std::string fit_page(const FitReport& report);

}  // namespace fleetfit::app
