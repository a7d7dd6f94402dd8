#include <algorithm>
#include <array>
#include <span>

#include "fleetfit/graph/blocks.h"
#include "fleetfit/graph/mobilenet_v3.h"
#include "graph/zoo/families.h"

/// Small networks that are a table of blocks around depthwise convolutions: MobileNet, MnasNet,
/// LCNet, GhostNet.
namespace fleetfit::graph {
namespace {

struct Widened {
  const char* name;
  double width;
};

/// The first convolution of all of them.
TensorId halving_stem(NetBuilder& net, TensorId x, std::int64_t out, const Activation& activation) {
  return net.conv_bn(x, {.out = out, .kernel = 3, .stride = 2}, activation);
}

/// A dense layer between the mean over the image and the classifier.
TensorId classify_hidden(NetBuilder& net, TensorId x, const Activation& activation,
                         std::int64_t classes) {
  x = net.conv(net.global_average_pool(x), {.out = 1280, .bias = true});
  return net.linear(net.flatten(net.activate(x, activation)), classes);
}

// --- MobileNetV1 ---

struct V1Stage {
  std::int64_t out;
  std::int64_t stride;
  int repeats;
};

constexpr V1Stage kV1Stages[] = {
    {64, 1, 1},  {128, 2, 1}, {128, 1, 1},  {256, 2, 1},  {256, 1, 1},
    {512, 2, 1}, {512, 1, 5}, {1024, 2, 1}, {1024, 1, 1},
};

constexpr Widened kMobileNetsV1[] = {
    {"mobilenet_v1_x0_25", 0.25},
    {"mobilenet_v1_x0_5", 0.5},
    {"mobilenet_v1_x0_75", 0.75},
    {"mobilenet_v1", 1},
};

TensorId mobilenet_v1(NetBuilder& net, TensorId x, const NetOptions& options, const Widened& row) {
  const double width = row.width * options.width;
  x = halving_stem(net, x, scaled_channels(32, width), kRelu6);
  for (const V1Stage& stage : kV1Stages) {
    const ConvSpec layer{
        .out = scaled_channels(stage.out, width), .kernel = 3, .stride = stage.stride};
    for (int i = 0; i < stage.repeats; ++i) x = depthwise_separable(net, x, layer, kRelu6);
  }
  return classify(net, x, options.classes);
}

// --- MobileNetV2 and MnasNet ---

struct Stage {
  std::int64_t kernel;
  std::int64_t expansion;
  std::int64_t out;
  int depth;
  std::int64_t stride;
};

/// Stages of inverted residuals; `common` gives what is the same in all of them, and whether those
/// that do not expand have a shortcut.
TensorId inverted_stages(NetBuilder& net, TensorId x, std::span<const Stage> stages, double width,
                         const InvertedResidual& common) {
  for (const Stage& stage : stages) {
    InvertedResidual block = common;
    block.kernel = stage.kernel;
    block.out = scaled_channels(stage.out, width);
    block.shortcut = common.shortcut || stage.expansion > 1;
    for (int i = 0; i < stage.depth; ++i) {
      block.stride = i == 0 ? stage.stride : 1;
      block.expanded = stage.expansion * net.channels(x);
      x = inverted_residual(net, x, block);
    }
  }
  return x;
}

constexpr Stage kV2Stages[] = {
    {3, 1, 16, 1, 1}, {3, 6, 24, 2, 2},  {3, 6, 32, 3, 2},  {3, 6, 64, 4, 2},
    {3, 6, 96, 3, 1}, {3, 6, 160, 3, 2}, {3, 6, 320, 1, 1},
};

struct MobileNetV2 {
  const char* name;
  double width;
  bool is_small =
      false;  ///< for small images, which the stem and the first stages keep as they are
};

constexpr MobileNetV2 kMobileNetsV2[] = {
    {"mobilenet_v2", 1},
    {"mobilenet_v2_x0_5", 0.5},
    {"mobilenet_v2_x0_75", 0.75},
    {"mobilenet_v2_x1_4", 1.4},
};

constexpr MobileNetV2 kSmallMobileNetsV2[] = {{"mobilenet_v2_small", 1, true}};

TensorId mobilenet_v2(NetBuilder& net, TensorId x, const NetOptions& options,
                      const MobileNetV2& row) {
  const double width = row.width * options.width;
  auto stages = std::to_array(kV2Stages);
  if (row.is_small) stages[1].stride = 1;
  x = net.conv_bn(
      x, {.out = scaled_channels(32, width), .kernel = 3, .stride = row.is_small ? 1 : 2}, kRelu6);
  x = inverted_stages(net, x, stages, width, {});
  x = net.conv_bn(x, {.out = scaled_channels(1280, std::max(1.0, width))}, kRelu6);
  return classify(net, x, options.classes);
}

constexpr Stage kMnasStages[] = {
    {3, 1, 16, 1, 1}, {3, 3, 24, 3, 2},  {5, 3, 40, 3, 2},  {5, 6, 80, 3, 2},
    {3, 6, 96, 2, 1}, {5, 6, 192, 4, 2}, {3, 6, 320, 1, 1},
};

constexpr Widened kMnasNets[] = {
    {"mnasnet0_5", 0.5},
    {"mnasnet0_75", 0.75},
    {"mnasnet1_0", 1},
    {"mnasnet1_3", 1.3},
};

TensorId mnasnet(NetBuilder& net, TensorId x, const NetOptions& options, const Widened& row) {
  const double width = row.width * options.width;
  x = halving_stem(net, x, scaled_channels(32, width), kRelu);
  x = inverted_stages(net, x, kMnasStages, width, {.activation = kRelu, .shortcut = false});
  return classify(net, net.conv_bn(x, {.out = 1280}, kRelu), options.classes);
}

// --- MobileNetV3 ---

constexpr float kV3Epsilon = 1e-3F;

using V3Block = MobileNetV3Block;
using Se = V3Block::Squeeze;
using Act = V3Block::Function;

constexpr V3Block kLarge[] = {
    {3, 16, 16, Se::no, Act::relu, 1},          {3, 64, 24, Se::no, Act::relu, 2},
    {3, 72, 24, Se::no, Act::relu, 1},          {5, 72, 40, Se::yes, Act::relu, 2},
    {5, 120, 40, Se::yes, Act::relu, 1},        {5, 120, 40, Se::yes, Act::relu, 1},
    {3, 240, 80, Se::no, Act::hard_swish, 2},   {3, 200, 80, Se::no, Act::hard_swish, 1},
    {3, 184, 80, Se::no, Act::hard_swish, 1},   {3, 184, 80, Se::no, Act::hard_swish, 1},
    {3, 480, 112, Se::yes, Act::hard_swish, 1}, {3, 672, 112, Se::yes, Act::hard_swish, 1},
    {5, 672, 160, Se::yes, Act::hard_swish, 2}, {5, 960, 160, Se::yes, Act::hard_swish, 1},
    {5, 960, 160, Se::yes, Act::hard_swish, 1},
};

constexpr V3Block kSmall[] = {
    {3, 16, 16, Se::yes, Act::relu, 2},        {3, 72, 24, Se::no, Act::relu, 2},
    {3, 88, 24, Se::no, Act::relu, 1},         {5, 96, 40, Se::yes, Act::hard_swish, 2},
    {5, 240, 40, Se::yes, Act::hard_swish, 1}, {5, 240, 40, Se::yes, Act::hard_swish, 1},
    {5, 120, 48, Se::yes, Act::hard_swish, 1}, {5, 144, 48, Se::yes, Act::hard_swish, 1},
    {5, 288, 96, Se::yes, Act::hard_swish, 2}, {5, 576, 96, Se::yes, Act::hard_swish, 1},
    {5, 576, 96, Se::yes, Act::hard_swish, 1},
};

struct MobileNetV3 {
  const char* name;
  std::span<const V3Block> blocks;
  std::int64_t hidden;  ///< features between the last two dense layers
};

constexpr MobileNetV3 kMobileNetsV3[] = {
    {"mobilenet_v3_large", kLarge, 1280},
    {"mobilenet_v3_small", kSmall, 1024},
};

TensorId mobilenet_v3(NetBuilder& net, TensorId x, const NetOptions& options,
                      const MobileNetV3& spec) {
  x = net.conv_bn(x, {.out = options.scaled(16), .kernel = 3, .stride = 2}, kHardSwish, kV3Epsilon);
  for (V3Block block : spec.blocks) {
    block.expanded = options.scaled(block.expanded);
    block.out = options.scaled(block.out);
    x = mobilenet_v3_block(net, x, block);
  }
  x = net.conv_bn(x, {.out = 6 * net.channels(x)}, kHardSwish, kV3Epsilon);
  return net.linear(net.activate(classify(net, x, options.scaled(spec.hidden)), kHardSwish),
                    options.classes);
}

// --- LCNet ---

constexpr Widened kLcNets[] = {
    {"lcnet_x0_35", 0.35}, {"lcnet_x0_5", 0.5}, {"lcnet_x0_75", 0.75},
    {"lcnet_x1_0", 1.0},   {"lcnet_x1_5", 1.5},
};

struct LcBlock {
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t out;
  bool squeeze;
};

constexpr LcBlock kLcBlocks[] = {
    {3, 1, 32, false},  {3, 2, 64, false},  {3, 1, 64, false},  {3, 2, 128, false},
    {3, 1, 128, false}, {3, 2, 256, false}, {5, 1, 256, false}, {5, 1, 256, false},
    {5, 1, 256, false}, {5, 1, 256, false}, {5, 1, 256, false}, {5, 2, 512, true},
    {5, 1, 512, true},
};

TensorId lcnet(NetBuilder& net, TensorId x, const NetOptions& options, const Widened& row) {
  const double width = row.width * options.width;
  x = halving_stem(net, x, scaled_channels(16, width), kHardSwish);
  for (const LcBlock& block : kLcBlocks) {
    const std::int64_t reduced = block.squeeze ? net.channels(x) / 4 : 0;
    x = depthwise(net, x, {.kernel = block.kernel, .stride = block.stride}, kHardSwish);
    x = squeeze_excite(net, x, {.reduced = reduced, .gate = kHardSigmoid});
    x = net.conv_bn(x, {.out = scaled_channels(block.out, width)}, kHardSwish);
  }
  return classify_hidden(net, x, kHardSwish, options.classes);
}

// --- GhostNet ---

constexpr Widened kGhostNets[] = {
    {"ghostnet_x0_5", 0.5}, {"ghostnet_x1_0", 1.0}, {"ghostnet_x1_3", 1.3}};

struct GhostBlock {
  std::int64_t kernel;
  std::int64_t expanded;
  std::int64_t out;
  bool squeeze;
  std::int64_t stride;
};

constexpr GhostBlock kGhostBlocks[] = {
    {3, 16, 16, false, 1},   {3, 48, 24, false, 2},  {3, 72, 24, false, 1},
    {5, 72, 40, true, 2},    {5, 120, 40, true, 1},  {3, 240, 80, false, 2},
    {3, 200, 80, false, 1},  {3, 184, 80, false, 1}, {3, 184, 80, false, 1},
    {3, 480, 112, true, 1},  {3, 672, 112, true, 1}, {5, 672, 160, true, 2},
    {5, 960, 160, false, 1}, {5, 960, 160, true, 1}, {5, 960, 160, false, 1},
    {5, 960, 160, true, 1},
};

/// Half of the channels by a convolution, the others as their cheap depthwise ghosts.
TensorId ghost(NetBuilder& net, TensorId x, std::int64_t out, const Activation& activation) {
  const std::int64_t half = out / 2;
  const TensorId primary = net.conv_bn(x, {.out = half}, activation);
  const TensorId cheap = depthwise(net, primary, {.kernel = 3}, activation);
  return net.concat({primary, cheap});
}

TensorId ghost_block(NetBuilder& net, TensorId x, const GhostBlock& spec, double width) {
  const std::int64_t out = scaled_channels(spec.out, width, 4);
  const std::int64_t expanded = scaled_channels(spec.expanded, width, 4);
  const ConvSpec layer{.kernel = spec.kernel, .stride = spec.stride};
  TensorId y = ghost(net, x, expanded, kRelu);
  if (spec.stride > 1) y = depthwise(net, y, layer);
  if (spec.squeeze) {
    y = squeeze_excite(net, y,
                       {.reduced = scaled_channels(expanded, 0.25, 4), .gate = kHardSigmoid});
  }
  y = ghost(net, y, out, {});
  if (spec.stride == 1 && net.channels(x) == out) return net.add(y, x);
  const TensorId shortcut = net.conv_bn(depthwise(net, x, layer), {.out = out});
  return net.add(y, shortcut);
}

TensorId ghostnet(NetBuilder& net, TensorId x, const NetOptions& options, const Widened& row) {
  const double width = row.width * options.width;
  x = halving_stem(net, x, scaled_channels(16, width, 4), kRelu);
  for (const GhostBlock& spec : kGhostBlocks) x = ghost_block(net, x, spec, width);
  x = net.conv_bn(x, {.out = scaled_channels(960, width, 4)}, kRelu);
  return classify_hidden(net, x, kRelu, options.classes);
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
                            .epsilon = kV3Epsilon});
}

void add_mobilenet(ZooList& zoo) {
  add_rows(zoo, {.family = "mobilenet_v1"}, kMobileNetsV1, mobilenet_v1);
  add_rows(zoo, {.family = "mobilenet_v2"}, kMobileNetsV2, mobilenet_v2);
  add_rows(zoo, {.family = "mobilenet_v2", .image = 32, .classes = 10}, kSmallMobileNetsV2,
           mobilenet_v2);
  add_rows(zoo, {.family = "mnasnet"}, kMnasNets, mnasnet);
  add_rows(zoo, {.family = "mobilenet_v3"}, kMobileNetsV3, mobilenet_v3);
  add_rows(zoo, {.family = "lcnet"}, kLcNets, lcnet);
  add_rows(zoo, {.family = "ghostnet"}, kGhostNets, ghostnet);
}

}  // namespace fleetfit::graph
