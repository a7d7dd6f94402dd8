#pragma once

#include <vector>

#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {

using ZooList = std::vector<ZooEntry>;

/// Adds every family below (families.cc).
void add_families(ZooList& zoo);

// Each adds the networks of one file, in alphabetical order.
void add_alexnet(ZooList& zoo);
void add_densenet(ZooList& zoo);
void add_dpn(ZooList& zoo);
void add_efficientnet(ZooList& zoo);
void add_fbnet(ZooList& zoo);
void add_inception(ZooList& zoo);
void add_mnasnet(ZooList& zoo);
void add_mobilenet_v1(ZooList& zoo);
void add_mobilenet_v2(ZooList& zoo);
void add_mobilenet_v3(ZooList& zoo);
void add_once_for_all(ZooList& zoo);
void add_proxylessnas(ZooList& zoo);
void add_resnet(ZooList& zoo);
void add_squeezenet(ZooList& zoo);
void add_vgg(ZooList& zoo);
void add_xception(ZooList& zoo);

}  // namespace fleetfit::graph
