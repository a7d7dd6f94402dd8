#include <span>

#include "fleetfit/graph/blocks.h"
#include "fleetfit/graph/mobilenet_v3.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

constexpr float kEpsilon = 1e-3F;

using Bottleneck = MobileNetV3Block;
using Se = Bottleneck::Squeeze;
using Act = Bottleneck::Function;

constexpr Bottleneck kLarge[] = {
    {3, 16, 16, Se::no, Act::relu, 1},          {3, 64, 24, Se::no, Act::relu, 2},
    {3, 72, 24, Se::no, Act::relu, 1},          {5, 72, 40, Se::yes, Act::relu, 2},
    {5, 120, 40, Se::yes, Act::relu, 1},        {5, 120, 40, Se::yes, Act::relu, 1},
    {3, 240, 80, Se::no, Act::hard_swish, 2},   {3, 200, 80, Se::no, Act::hard_swish, 1},
    {3, 184, 80, Se::no, Act::hard_swish, 1},   {3, 184, 80, Se::no, Act::hard_swish, 1},
    {3, 480, 112, Se::yes, Act::hard_swish, 1}, {3, 672, 112, Se::yes, Act::hard_swish, 1},
    {5, 672, 160, Se::yes, Act::hard_swish, 2}, {5, 960, 160, Se::yes, Act::hard_swish, 1},
    {5, 960, 160, Se::yes, Act::hard_swish, 1},
};

constexpr Bottleneck kSmall[] = {
    {3, 16, 16, Se::yes, Act::relu, 2},        {3, 72, 24, Se::no, Act::relu, 2},
    {3, 88, 24, Se::no, Act::relu, 1},         {5, 96, 40, Se::yes, Act::hard_swish, 2},
    {5, 240, 40, Se::yes, Act::hard_swish, 1}, {5, 240, 40, Se::yes, Act::hard_swish, 1},
    {5, 120, 48, Se::yes, Act::hard_swish, 1}, {5, 144, 48, Se::yes, Act::hard_swish, 1},
    {5, 288, 96, Se::yes, Act::hard_swish, 2}, {5, 576, 96, Se::yes, Act::hard_swish, 1},
    {5, 576, 96, Se::yes, Act::hard_swish, 1},
};

struct MobileNetV3 {
  const char* name;
  std::span<const Bottleneck> blocks;
  std::int64_t hidden;  ///< features between the last two dense layers
};

constexpr MobileNetV3 kMobileNets[] = {
    {"mobilenet_v3_large", kLarge, 1280},
    {"mobilenet_v3_small", kSmall, 1024},
};

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const MobileNetV3& spec) {
  x = net.conv_bn(x, {.out = options.scaled(16), .kernel = 3, .stride = 2}, kHardSwish, kEpsilon);
  for (Bottleneck block : spec.blocks) {
    block.expanded = options.scaled(block.expanded);
    block.out = options.scaled(block.out);
    x = mobilenet_v3_block(net, x, block);
  }
  x = net.conv_bn(x, {.out = 6 * net.channels(x)}, kHardSwish, kEpsilon);
  return net.linear(net.activate(classify(net, x, options.scaled(spec.hidden)), kHardSwish),
                    options.classes);
}

}  // namespace

std::span<const MobileNetV3Block> mobilenet_v3_large() { return kLarge; }

TensorId mobilenet_v3_block(NetBuilder& net, TensorId x, const MobileNetV3Block& block) {
  const std::int64_t reduced =
      block.squeeze == Se::yes ? scaled_channels(block.expanded / 4, 1) : 0;
  return inverted_residual(net, x,
                           {.kernel = block.kernel,
                            .stride = block.stride,
                            .expanded = block.expanded,
                            .out = block.out,
                            .se = {.reduced = reduced, .gate = kHardSigmoid},
                            .activation = block.function == Act::relu ? kRelu : kHardSwish,
                            .epsilon = kEpsilon});
}

void add_mobilenet_v3(ZooList& zoo) {
  add_rows(zoo, {.family = "mobilenet_v3"}, kMobileNets, build);
}

}  // namespace fleetfit::graph
