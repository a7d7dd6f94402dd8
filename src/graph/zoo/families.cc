#include "graph/zoo/families.h"

namespace fleetfit::graph {

void add_families(ZooList& zoo) {
  add_alexnet(zoo);
  add_bagnet(zoo);
  add_convmixer(zoo);
  add_convnext(zoo);
  add_cspnet(zoo);
  add_darknet(zoo);
  add_deit(zoo);
  add_densenet(zoo);
  add_dpn(zoo);
  add_efficientnet(zoo);
  add_espnet_v2(zoo);
  add_fbnet(zoo);
  add_ghostnet(zoo);
  add_hardnet(zoo);
  add_hrnet(zoo);
  add_inception(zoo);
  add_inception_v4(zoo);
  add_lcnet(zoo);
  add_lenet(zoo);
  add_mixnet(zoo);
  add_mlp_mixer(zoo);
  add_mnasnet(zoo);
  add_mobilenet_v1(zoo);
  add_mobilenet_v2(zoo);
  add_mobilenet_v3(zoo);
  add_mobileone(zoo);
  add_mobilevit(zoo);
  add_once_for_all(zoo);
  add_peleenet(zoo);
  add_proxylessnas(zoo);
  add_regnet_x(zoo);
  add_regnet_y(zoo);
  add_repvgg(zoo);
  add_res2net(zoo);
  add_resnet(zoo);
  add_shufflenet_v1(zoo);
  add_shufflenet_v2(zoo);
  add_squeezenet(zoo);
  add_vgg(zoo);
  add_vit(zoo);
  add_vovnet(zoo);
  add_xception(zoo);
}

}  // namespace fleetfit::graph
