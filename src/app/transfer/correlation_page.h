#pragma once

#include <string>

#include "fleetfit/app/transferring.h"

namespace fleetfit::app {

/// The matrix as a heat map, with similar devices beside each other, the ranking of proxies and the
/// explanation by rooflines: one HTML document that needs nothing else.
std::string correlation_page(const CorrelationReport& report);

}  // namespace fleetfit::app
