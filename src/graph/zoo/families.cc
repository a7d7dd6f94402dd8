#include "graph/zoo/families.h"

namespace fleetfit::graph {

void add_families(ZooList& zoo) {
  add_alexnet(zoo);
  add_densenet(zoo);
  add_dpn(zoo);
  add_efficientnet(zoo);
  add_fbnet(zoo);
  add_inception(zoo);
  add_mnasnet(zoo);
  add_mobilenet_v1(zoo);
  add_mobilenet_v2(zoo);
  add_mobilenet_v3(zoo);
  add_once_for_all(zoo);
  add_proxylessnas(zoo);
  add_resnet(zoo);
  add_squeezenet(zoo);
  add_vgg(zoo);
  add_xception(zoo);
}

}  // namespace fleetfit::graph
