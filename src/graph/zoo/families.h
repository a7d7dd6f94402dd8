#pragma once

#include <vector>

#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {

using ZooList = std::vector<ZooEntry>;

/// Adds every family below (families.cc).
void add_families(ZooList& zoo);

// Each adds the networks of one file, in alphabetical order.
void add_alexnet(ZooList& zoo);
void add_bagnet(ZooList& zoo);
void add_convmixer(ZooList& zoo);
void add_convnext(ZooList& zoo);
void add_cspnet(ZooList& zoo);
void add_darknet(ZooList& zoo);
void add_deit(ZooList& zoo);
void add_densenet(ZooList& zoo);
void add_dpn(ZooList& zoo);
void add_efficientnet(ZooList& zoo);
void add_espnet_v2(ZooList& zoo);
void add_fbnet(ZooList& zoo);
void add_ghostnet(ZooList& zoo);
void add_hardnet(ZooList& zoo);
void add_hrnet(ZooList& zoo);
void add_inception(ZooList& zoo);
void add_inception_v4(ZooList& zoo);
void add_lcnet(ZooList& zoo);
void add_lenet(ZooList& zoo);
void add_mixnet(ZooList& zoo);
void add_mlp_mixer(ZooList& zoo);
void add_mnasnet(ZooList& zoo);
void add_mobilenet_v1(ZooList& zoo);
void add_mobilenet_v2(ZooList& zoo);
void add_mobilenet_v3(ZooList& zoo);
void add_mobileone(ZooList& zoo);
void add_mobilevit(ZooList& zoo);
void add_once_for_all(ZooList& zoo);
void add_peleenet(ZooList& zoo);
void add_proxylessnas(ZooList& zoo);
void add_regnet_x(ZooList& zoo);
void add_regnet_y(ZooList& zoo);
void add_repvgg(ZooList& zoo);
void add_res2net(ZooList& zoo);
void add_resnet(ZooList& zoo);
void add_shufflenet_v1(ZooList& zoo);
void add_shufflenet_v2(ZooList& zoo);
void add_squeezenet(ZooList& zoo);
void add_vgg(ZooList& zoo);
void add_vit(ZooList& zoo);
void add_vovnet(ZooList& zoo);
void add_xception(ZooList& zoo);

}  // namespace fleetfit::graph
