#pragma once

#include <vector>

#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {

using ZooList = std::vector<ZooEntry>;

/// Adds every family below (families.cc).
void add_families(ZooList& zoo);

// Each adds the networks of one file, in alphabetical order.

}  // namespace fleetfit::graph
