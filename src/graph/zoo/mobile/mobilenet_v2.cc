#include <algorithm>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

struct Stage {
  std::int64_t expansion;
  std::int64_t out;
  int depth;
  std::int64_t stride;
};

constexpr Stage kStages[] = {
    {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2},  {6, 64, 4, 2},
    {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
};

enum class Size : std::uint8_t {
  large_image,
  small_image,  ///< keeps the resolution in the stem and in the first two stages
};

struct MobileNetV2 {
  const char* name;
  double width;
  Size size = Size::large_image;
};

constexpr MobileNetV2 kMobileNets[] = {
    {"mobilenet_v2", 1},
    {"mobilenet_v2_x0_5", 0.5},
    {"mobilenet_v2_x0_75", 0.75},
    {"mobilenet_v2_x1_4", 1.4},
};

constexpr MobileNetV2 kSmallMobileNets[] = {
    {"mobilenet_v2_small", 1, Size::small_image},
};

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const MobileNetV2& spec) {
  const double width = spec.width * options.width;
  const bool small = spec.size == Size::small_image;
  x = net.conv_bn(x, {.out = scaled_channels(32, width), .kernel = 3, .stride = small ? 1 : 2},
                  kRelu6);
  for (const Stage& stage : kStages) {
    const std::int64_t first_stride = small && stage.out == 24 ? 1 : stage.stride;
    for (int i = 0; i < stage.depth; ++i) {
      x = inverted_residual(net, x,
                            {.stride = i == 0 ? first_stride : 1,
                             .expanded = stage.expansion * net.channels(x),
                             .out = scaled_channels(stage.out, width)});
    }
  }
  x = net.conv_bn(x, {.out = scaled_channels(1280, std::max(1.0, width))}, kRelu6);
  return classify(net, x, options.classes);
}

}  // namespace

void add_mobilenet_v2(ZooList& zoo) {
  add_rows(zoo, {.family = "mobilenet_v2"}, kMobileNets, build);
  add_rows(zoo, {.family = "mobilenet_v2", .image = 32, .classes = 10}, kSmallMobileNets, build);
}

}  // namespace fleetfit::graph
