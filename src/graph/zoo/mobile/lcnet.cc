#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  double width;
};

constexpr Network kNetworks[] = {
    {"lcnet_x0_35", 0.35}, {"lcnet_x0_5", 0.5}, {"lcnet_x0_75", 0.75},
    {"lcnet_x1_0", 1.0},   {"lcnet_x1_5", 1.5},
};

struct Block {
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t out;
  bool squeeze;
};

constexpr Block kBlocks[] = {
    {3, 1, 32, false},  {3, 2, 64, false},  {3, 1, 64, false},  {3, 2, 128, false},
    {3, 1, 128, false}, {3, 2, 256, false}, {5, 1, 256, false}, {5, 1, 256, false},
    {5, 1, 256, false}, {5, 1, 256, false}, {5, 1, 256, false}, {5, 2, 512, true},
    {5, 1, 512, true},
};

TensorId block(NetBuilder& net, TensorId x, const Block& spec, double width) {
  const std::int64_t in = net.channels(x);
  x = net.conv_bn(x, {.out = in, .kernel = spec.kernel, .stride = spec.stride, .groups = in},
                  kHardSwish);
  x = squeeze_excite(net, x, {.reduced = spec.squeeze ? in / 4 : 0, .gate = kHardSigmoid});
  return net.conv_bn(x, {.out = scaled_channels(spec.out, width)}, kHardSwish);
}

TensorId lcnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const double width = row.width * options.width;
  x = net.conv_bn(x, {.out = scaled_channels(16, width), .kernel = 3, .stride = 2}, kHardSwish);
  for (const Block& spec : kBlocks) x = block(net, x, spec, width);
  x = net.conv(net.global_average_pool(x), {.out = 1280, .bias = true});
  return net.linear(net.flatten(net.activate(x, kHardSwish)), options.classes);
}

}  // namespace

void add_lcnet(ZooList& zoo) { add_rows(zoo, {.family = "lcnet"}, kNetworks, lcnet); }

}  // namespace fleetfit::graph
