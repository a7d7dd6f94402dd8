#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

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

std::vector<Stage> b0_stages() {
  return {
      {1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},  {6, 3, 2, 80, 3},
      {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1},
  };
}

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
  std::vector<Stage> stages = b0_stages();
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
  std::vector<Stage> stages = b0_stages();
  for (Stage& stage : stages) {
    stage.out = scaled_channels(stage.out, scaling.width * options.width);
    const bool outer = &stage == &stages.front() || &stage == &stages.back();
    if (!outer) stage.depth = scaled_depth(stage.depth, scaling.depth);
  }
  return {options.scaled(32), std::move(stages), options.scaled(1280), Se::no, kRelu6, 1e-3F};
}

struct EfficientNetV2 {
  const char* name;
  std::int64_t image;
  std::vector<Stage> stages;
};

std::vector<EfficientNetV2> efficientnet_v2s() {
  constexpr Block kFused = Block::fused;
  return {
      {"efficientnet_v2_s",
       384,
       {{1, 3, 1, 24, 2, kFused},
        {4, 3, 2, 48, 4, kFused},
        {4, 3, 2, 64, 4, kFused},
        {4, 3, 2, 128, 6},
        {6, 3, 1, 160, 9},
        {6, 3, 2, 256, 15}}},
      {"efficientnet_v2_m",
       480,
       {{1, 3, 1, 24, 3, kFused},
        {4, 3, 2, 48, 5, kFused},
        {4, 3, 2, 80, 5, kFused},
        {4, 3, 2, 160, 7},
        {6, 3, 1, 176, 14},
        {6, 3, 2, 304, 18},
        {6, 3, 1, 512, 5}}},
      {"efficientnet_v2_l",
       480,
       {{1, 3, 1, 32, 4, kFused},
        {4, 3, 2, 64, 7, kFused},
        {4, 3, 2, 96, 7, kFused},
        {4, 3, 2, 192, 10},
        {6, 3, 1, 224, 19},
        {6, 3, 2, 384, 25},
        {6, 3, 1, 640, 7}}},
  };
}

Plan efficientnet_v2(const EfficientNetV2& spec, const NetOptions& options) {
  std::vector<Stage> stages = spec.stages;
  for (Stage& stage : stages) stage.out = options.scaled(stage.out);
  const std::int64_t stem = stages.front().out;
  return {stem, std::move(stages), options.scaled(1280), Se::yes, kSilu, 1e-3F};
}

/// Adds the networks whose plans are `plan(row, options)`.
template <class Rows, class MakePlan>
void add_plans(ZooList& zoo, const char* family, const Rows& rows, MakePlan plan) {
  for (const auto& row : rows) {
    add_rows(zoo, {.family = family, .image = row.image}, std::span(&row, 1),
             [plan](NetBuilder& net, TensorId x, const NetOptions& options, const auto& spec) {
               return build(plan(spec, options), net, x, options.classes);
             });
  }
}

}  // namespace

void add_efficientnet(ZooList& zoo) {
  add_plans(zoo, "efficientnet", kEfficientNets, efficientnet);
  add_plans(zoo, "efficientnet_lite", kLites, lite);
  add_plans(zoo, "efficientnet_v2", efficientnet_v2s(), efficientnet_v2);
}

}  // namespace fleetfit::graph
