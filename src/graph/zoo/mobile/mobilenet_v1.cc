#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

struct Stage {
  std::int64_t out;
  std::int64_t stride;
  int repeats;
};

constexpr Stage kStages[] = {
    {64, 1, 1},  {128, 2, 1}, {128, 1, 1},  {256, 2, 1},  {256, 1, 1},
    {512, 2, 1}, {512, 1, 5}, {1024, 2, 1}, {1024, 1, 1},
};

struct MobileNetV1 {
  const char* name;
  double width;
};

constexpr MobileNetV1 kMobileNets[] = {
    {"mobilenet_v1_x0_25", 0.25},
    {"mobilenet_v1_x0_5", 0.5},
    {"mobilenet_v1_x0_75", 0.75},
    {"mobilenet_v1", 1},
};

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const MobileNetV1& spec) {
  const double width = spec.width * options.width;
  x = net.conv_bn(x, {.out = scaled_channels(32, width), .kernel = 3, .stride = 2}, kRelu6);
  for (const Stage& stage : kStages) {
    const ConvSpec layer{
        .out = scaled_channels(stage.out, width), .kernel = 3, .stride = stage.stride};
    for (int i = 0; i < stage.repeats; ++i) x = depthwise_separable(net, x, layer, kRelu6);
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_mobilenet_v1(ZooList& zoo) {
  add_rows(zoo, {.family = "mobilenet_v1"}, kMobileNets, build);
}

}  // namespace fleetfit::graph
