#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

// --- EfficientNet ---

enum class Block : std::uint8_t { inverted, fused };
enum class Se : std::uint8_t { no, yes };

struct Stage {
  std::int64_t expansion;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t out;
  int depth;
  Block block = Block::inverted;
};

/// A network with its channels and depths worked out.
struct Plan {
  std::int64_t stem;
  std::vector<Stage> stages;
  std::int64_t head;
  Se se;
  Activation activation;
  float epsilon;
};

constexpr Stage kB0Stages[] = {
    {1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},  {6, 3, 2, 80, 3},
    {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1},
};

int scaled_depth(int depth, double factor) { return static_cast<int>(std::ceil(depth * factor)); }

TensorId build(const Plan& plan, NetBuilder& net, TensorId x, std::int64_t classes) {
  const auto conv = [&](const ConvSpec& spec) {
    x = net.conv_bn(x, spec, plan.activation, plan.epsilon);
  };
  conv({.out = plan.stem, .kernel = 3, .stride = 2});
  for (const Stage& stage : plan.stages) {
    for (int i = 0; i < stage.depth; ++i) {
      const std::int64_t in = net.channels(x);
      const std::int64_t reduced = plan.se == Se::yes ? std::max<std::int64_t>(1, in / 4) : 0;
      const InvertedResidual block{.kernel = stage.kernel,
                                   .stride = i == 0 ? stage.stride : 1,
                                   .expanded = stage.expansion * in,
                                   .out = stage.out,
                                   .se = {.reduced = reduced, .inner = kSilu},
                                   .activation = plan.activation,
                                   .epsilon = plan.epsilon};
      x = stage.block == Block::fused ? fused_inverted_residual(net, x, block)
                                      : inverted_residual(net, x, block);
    }
  }
  conv({.out = plan.head});
  return classify(net, x, classes);
}

/// One of a series that grows in width, depth and image together.
struct Scaling {
  const char* name;
  double width;
  double depth;
  std::int64_t image;
};

constexpr Scaling kEfficientNets[] = {
    {"efficientnet_b0", 1.0, 1.0, 224}, {"efficientnet_b1", 1.0, 1.1, 240},
    {"efficientnet_b2", 1.1, 1.2, 288}, {"efficientnet_b3", 1.2, 1.4, 300},
    {"efficientnet_b4", 1.4, 1.8, 380}, {"efficientnet_b5", 1.6, 2.2, 456},
    {"efficientnet_b6", 1.8, 2.6, 528}, {"efficientnet_b7", 2.0, 3.1, 600},
};

Plan efficientnet(const Scaling& scaling, const NetOptions& options) {
  const double width = scaling.width * options.width;
  std::vector<Stage> stages(std::begin(kB0Stages), std::end(kB0Stages));
  for (Stage& stage : stages) {
    stage.out = scaled_channels(stage.out, width);
    stage.depth = scaled_depth(stage.depth, scaling.depth);
  }
  // torchvision trains the three largest with another batch norm than the others.
  const float epsilon = scaling.width > 1.5 ? 1e-3F : 1e-5F;
  const std::int64_t head = 4 * stages.back().out;
  return {scaled_channels(32, width), std::move(stages), head, Se::yes, kSilu, epsilon};
}

constexpr Scaling kLites[] = {
    {"efficientnet_lite0", 1.0, 1.0, 224}, {"efficientnet_lite1", 1.0, 1.1, 240},
    {"efficientnet_lite2", 1.1, 1.2, 260}, {"efficientnet_lite3", 1.2, 1.4, 280},
    {"efficientnet_lite4", 1.4, 1.8, 300},
};

/// Without squeeze-excite; the stem, the head and the depth of the first and last stage stay.
Plan lite(const Scaling& scaling, const NetOptions& options) {
  std::vector<Stage> stages(std::begin(kB0Stages), std::end(kB0Stages));
  for (Stage& stage : stages) {
    stage.out = scaled_channels(stage.out, scaling.width * options.width);
    const bool outer = &stage == &stages.front() || &stage == &stages.back();
    if (!outer) stage.depth = scaled_depth(stage.depth, scaling.depth);
  }
  return {options.scaled(32), std::move(stages), options.scaled(1280), Se::no, kRelu6, 1e-3F};
}

constexpr Block kFused = Block::fused;

constexpr Stage kV2Small[] = {
    {1, 3, 1, 24, 2, kFused}, {4, 3, 2, 48, 4, kFused}, {4, 3, 2, 64, 4, kFused},
    {4, 3, 2, 128, 6},        {6, 3, 1, 160, 9},        {6, 3, 2, 256, 15},
};
constexpr Stage kV2Medium[] = {
    {1, 3, 1, 24, 3, kFused}, {4, 3, 2, 48, 5, kFused}, {4, 3, 2, 80, 5, kFused}, {4, 3, 2, 160, 7},
    {6, 3, 1, 176, 14},       {6, 3, 2, 304, 18},       {6, 3, 1, 512, 5},
};
constexpr Stage kV2Large[] = {
    {1, 3, 1, 32, 4, kFused}, {4, 3, 2, 64, 7, kFused}, {4, 3, 2, 96, 7, kFused},
    {4, 3, 2, 192, 10},       {6, 3, 1, 224, 19},       {6, 3, 2, 384, 25},
    {6, 3, 1, 640, 7},
};

struct EfficientNetV2 {
  const char* name;
  std::int64_t image;
  std::span<const Stage> stages;
};

constexpr EfficientNetV2 kEfficientNetsV2[] = {
    {"efficientnet_v2_s", 384, kV2Small},
    {"efficientnet_v2_m", 480, kV2Medium},
    {"efficientnet_v2_l", 480, kV2Large},
};

Plan efficientnet_v2(const EfficientNetV2& spec, const NetOptions& options) {
  std::vector<Stage> stages(spec.stages.begin(), spec.stages.end());
  for (Stage& stage : stages) stage.out = options.scaled(stage.out);
  const std::int64_t stem = stages.front().out;
  return {stem, std::move(stages), options.scaled(1280), Se::yes, kSilu, 1e-3F};
}

/// Adds the networks whose plans are `plan(row, options)`.
template <class Rows, class MakePlan>
void add_plans(ZooList& zoo, const char* family, const Rows& rows, MakePlan plan) {
  add_rows(zoo, {.family = family}, rows,
           [plan](NetBuilder& net, TensorId x, const NetOptions& options, const auto& row) {
             return build(plan(row, options), net, x, options.classes);
           });
}

// --- MixNet ---

struct MixedBlock {
  std::int64_t out;
  std::int64_t stride;
  std::int64_t expand;         ///< times the input's channels
  std::int64_t expand_parts;   ///< groups of channels with convolutions of their own
  std::int64_t kernels;        ///< depthwise kernels of 3, 5, 7, … side by side
  std::int64_t project_parts;  ///< as expand_parts
  std::int64_t squeeze;        ///< divides the input's channels; 0: no squeeze-excite
};

constexpr MixedBlock kMixedSmall[] = {
    {24, 2, 6, 2, 1, 2, 0},  {24, 1, 3, 2, 1, 2, 0},  {40, 2, 6, 1, 3, 1, 2},
    {40, 1, 6, 2, 2, 2, 2},  {40, 1, 6, 2, 2, 2, 2},  {40, 1, 6, 2, 2, 2, 2},
    {80, 2, 6, 1, 3, 2, 4},  {80, 1, 6, 1, 2, 2, 4},  {80, 1, 6, 1, 2, 2, 4},
    {120, 1, 6, 2, 3, 2, 2}, {120, 1, 3, 2, 4, 2, 2}, {120, 1, 3, 2, 4, 2, 2},
    {200, 2, 6, 1, 5, 1, 2}, {200, 1, 6, 1, 4, 2, 2}, {200, 1, 6, 1, 4, 2, 2},
};

constexpr MixedBlock kMixedMedium[] = {
    {32, 2, 6, 2, 3, 2, 0},  {32, 1, 3, 2, 1, 2, 0},  {40, 2, 6, 1, 4, 1, 2},
    {40, 1, 6, 2, 2, 2, 2},  {40, 1, 6, 2, 2, 2, 2},  {40, 1, 6, 2, 2, 2, 2},
    {80, 2, 6, 1, 3, 1, 4},  {80, 1, 6, 2, 4, 2, 4},  {80, 1, 6, 2, 4, 2, 4},
    {80, 1, 6, 2, 4, 2, 4},  {120, 1, 6, 1, 1, 1, 2}, {120, 1, 3, 2, 4, 2, 2},
    {120, 1, 3, 2, 4, 2, 2}, {120, 1, 3, 2, 4, 2, 2}, {200, 2, 6, 1, 4, 1, 2},
    {200, 1, 6, 1, 4, 2, 2}, {200, 1, 6, 1, 4, 2, 2}, {200, 1, 6, 1, 4, 2, 2},
};

struct MixNet {
  const char* name;
  std::span<const MixedBlock> blocks;
  std::int64_t stem;
  double width;
};

constexpr MixNet kMixNets[] = {{"mixnet_s", kMixedSmall, 16, 1},
                               {"mixnet_m", kMixedMedium, 24, 1},
                               {"mixnet_l", kMixedMedium, 24, 1.3}};

/// Equal parts, the first of which takes what is left over.
Ints parts_of(std::int64_t channels, std::int64_t parts) {
  Ints sizes(static_cast<std::size_t>(parts), channels / parts);
  sizes[0] += channels % parts;
  return sizes;
}

/// A convolution for each part of the channels, with batch norm over all of them. `convolve` gets
/// the input's part, the number of its output channels and its index.
template <class Convolve>
TensorId in_parts(NetBuilder& net, TensorId x, const Ints& in, const Ints& out, Convolve convolve) {
  if (in.size() == 1) return net.batch_norm(convolve(x, out[0], 0));
  std::vector<TensorId> made = net.split(x, in);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = convolve(made[i], out[i], static_cast<std::int64_t>(i));
  }
  return net.batch_norm(net.concat(made));
}

TensorId pointwise(NetBuilder& net, TensorId x, std::int64_t out, std::int64_t parts) {
  return in_parts(net, x, parts_of(net.channels(x), parts), parts_of(out, parts),
                  [&](TensorId part, std::int64_t channels, std::int64_t) {
                    return net.conv(part, {.out = channels});
                  });
}

TensorId mixed_depthwise(NetBuilder& net, TensorId x, std::int64_t kernels, std::int64_t stride) {
  const Ints sizes = parts_of(net.channels(x), kernels);
  return in_parts(
      net, x, sizes, sizes, [&](TensorId part, std::int64_t channels, std::int64_t index) {
        return net.conv(
            part, {.out = channels, .kernel = 3 + 2 * index, .stride = stride, .groups = channels});
      });
}

TensorId mixed_block(NetBuilder& net, TensorId x, const MixedBlock& spec,
                     const Activation& activation) {
  const std::int64_t in = net.channels(x);
  TensorId y = x;
  if (spec.expand > 1) {
    y = net.activate(pointwise(net, y, spec.expand * in, spec.expand_parts), activation);
  }
  y = net.activate(mixed_depthwise(net, y, spec.kernels, spec.stride), activation);
  const std::int64_t reduced = spec.squeeze == 0 ? 0 : in / spec.squeeze;
  y = squeeze_excite(net, y, {.reduced = reduced, .inner = activation});
  y = pointwise(net, y, spec.out, spec.project_parts);
  return spec.stride == 1 && in == spec.out ? net.add(y, x) : y;
}

TensorId mixnet(NetBuilder& net, TensorId x, const NetOptions& options, const MixNet& row) {
  const double width = row.width * options.width;
  const std::int64_t stem = scaled_channels(row.stem, width);
  x = net.conv_bn(x, {.out = stem, .kernel = 3, .stride = 2}, kRelu);
  x = mixed_block(net, x, {stem, 1, 1, 1, 1, 1, 0}, kRelu);
  for (std::size_t i = 0; i < row.blocks.size(); ++i) {
    MixedBlock spec = row.blocks[i];
    spec.out = scaled_channels(spec.out, width);
    x = mixed_block(net, x, spec, i < 2 ? kRelu : kSilu);
  }
  x = net.conv_bn(x, {.out = 1536}, kRelu);
  return classify(net, x, options.classes);
}

}  // namespace

void add_efficientnet(ZooList& zoo) {
  add_plans(zoo, "efficientnet", kEfficientNets, efficientnet);
  add_plans(zoo, "efficientnet_lite", kLites, lite);
  add_plans(zoo, "efficientnet_v2", kEfficientNetsV2, efficientnet_v2);
  add_rows(zoo, {.family = "mixnet"}, kMixNets, mixnet);
}

}  // namespace fleetfit::graph
