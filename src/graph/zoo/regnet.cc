#include <algorithm>
#include <cmath>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

/// The few numbers from which the design space derives the width of every block.
struct Network {
  const char* name;
  int depth;
  double first_width;
  double slope;
  double ratio;  ///< of the widths of two stages, before rounding
  std::int64_t group_width;
  double squeeze;  ///< squeezed channels for each input channel of a block; 0: no squeeze-excite
};

constexpr Network kNetworksX[] = {
    {"regnet_x_400mf", 22, 24, 24.48, 2.54, 16, 0}, {"regnet_x_800mf", 16, 56, 35.73, 2.28, 16, 0},
    {"regnet_x_1_6gf", 18, 80, 34.01, 2.25, 24, 0}, {"regnet_x_3_2gf", 25, 88, 26.31, 2.25, 48, 0},
    {"regnet_x_8gf", 23, 80, 49.56, 2.88, 120, 0},  {"regnet_x_16gf", 22, 216, 55.59, 2.1, 128, 0},
    {"regnet_x_32gf", 23, 320, 69.86, 2.0, 168, 0},
};

constexpr Network kNetworksY[] = {
    {"regnet_y_400mf", 16, 48, 27.89, 2.09, 8, 0.25},
    {"regnet_y_800mf", 14, 56, 38.84, 2.4, 16, 0.25},
    {"regnet_y_1_6gf", 27, 48, 20.71, 2.65, 24, 0.25},
    {"regnet_y_3_2gf", 21, 80, 42.63, 2.66, 24, 0.25},
    {"regnet_y_8gf", 17, 192, 76.82, 2.19, 56, 0.25},
    {"regnet_y_16gf", 18, 200, 106.23, 2.48, 112, 0.25},
    {"regnet_y_32gf", 20, 232, 115.89, 2.53, 232, 0.25},
};

/// Widths of the blocks: on a line, then rounded to powers of the ratio and to multiples of 8, so
/// that neighbours form stages of one width.
std::vector<std::int64_t> block_widths(const Network& row) {
  std::vector<std::int64_t> widths;
  for (int i = 0; i < row.depth; ++i) {
    const double on_line = row.first_width + row.slope * i;
    const double power = std::nearbyint(std::log(on_line / row.first_width) / std::log(row.ratio));
    const double exact = row.first_width * std::pow(row.ratio, power);
    widths.push_back(8 * static_cast<std::int64_t>(std::nearbyint(exact / 8)));
  }
  return widths;
}

struct Block {
  std::int64_t out;
  std::int64_t stride;
  std::int64_t group_width;
  std::int64_t reduced;
};

TensorId block(NetBuilder& net, TensorId x, const Block& spec) {
  TensorId shortcut = x;
  if (net.channels(x) != spec.out || spec.stride != 1) {
    shortcut = net.conv_bn(x, {.out = spec.out, .stride = spec.stride});
  }
  TensorId y = net.conv_bn(x, {.out = spec.out}, kRelu);
  y = net.conv_bn(
      y,
      {.out = spec.out, .kernel = 3, .stride = spec.stride, .groups = spec.out / spec.group_width},
      kRelu);
  y = squeeze_excite(net, y, {.reduced = spec.reduced});
  y = net.conv_bn(y, {.out = spec.out});
  return net.activate(net.add(shortcut, y), kRelu);
}

TensorId regnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  x = net.conv_bn(x, {.out = options.scaled(32), .kernel = 3, .stride = 2}, kRelu);
  std::int64_t previous = 0;
  for (const std::int64_t published : block_widths(row)) {
    const std::int64_t width = options.scaled(published);
    const std::int64_t group_width = std::min(row.group_width, width);
    const auto reduced = static_cast<std::int64_t>(
        std::nearbyint(row.squeeze * static_cast<double>(net.channels(x))));
    x = block(net, x,
              {.out = scaled_channels(width, 1, group_width),
               .stride = published == previous ? 1 : 2,
               .group_width = group_width,
               .reduced = reduced});
    previous = published;
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_regnet(ZooList& zoo) {
  add_rows(zoo, {.family = "regnet_x"}, kNetworksX, regnet);
  add_rows(zoo, {.family = "regnet_y"}, kNetworksY, regnet);
}

}  // namespace fleetfit::graph
