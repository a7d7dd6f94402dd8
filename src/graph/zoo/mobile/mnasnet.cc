#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

struct Stage {
  std::int64_t kernel;
  std::int64_t expansion;
  std::int64_t out;
  int depth;
  std::int64_t stride;
};

constexpr Stage kStages[] = {
    {3, 1, 16, 1, 1}, {3, 3, 24, 3, 2},  {5, 3, 40, 3, 2},  {5, 6, 80, 3, 2},
    {3, 6, 96, 2, 1}, {5, 6, 192, 4, 2}, {3, 6, 320, 1, 1},
};

struct MnasNet {
  const char* name;
  double width;
};

constexpr MnasNet kMnasNets[] = {
    {"mnasnet0_5", 0.5},
    {"mnasnet0_75", 0.75},
    {"mnasnet1_0", 1},
    {"mnasnet1_3", 1.3},
};

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const MnasNet& spec) {
  const double width = spec.width * options.width;
  x = net.conv_bn(x, {.out = scaled_channels(32, width), .kernel = 3, .stride = 2}, kRelu);
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.depth; ++i) {
      x = inverted_residual(net, x,
                            {.kernel = stage.kernel,
                             .stride = i == 0 ? stage.stride : 1,
                             .expanded = stage.expansion * net.channels(x),
                             .out = scaled_channels(stage.out, width),
                             .activation = kRelu,
                             .shortcut = stage.expansion > 1});
    }
  }
  return classify(net, net.conv_bn(x, {.out = 1280}, kRelu), options.classes);
}

}  // namespace

void add_mnasnet(ZooList& zoo) { add_rows(zoo, {.family = "mnasnet"}, kMnasNets, build); }

}  // namespace fleetfit::graph
