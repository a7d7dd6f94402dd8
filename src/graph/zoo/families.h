#pragma once

#include <vector>

#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {

/// Each adds the networks of one file. The order is that of the zoo's listing.
using ZooList = std::vector<ZooEntry>;

void add_alexnet(ZooList& zoo);

}  // namespace fleetfit::graph
