#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::array<int, 4> depth;
  std::int64_t width;   ///< channels of one part in the first stage
  std::int64_t scales;  ///< parts of a block's inner channels
};

constexpr Network kNetworks[] = {
    {"res2net50_48w_2s", {3, 4, 6, 3}, 48, 2},
    {"res2net50_26w_4s", {3, 4, 6, 3}, 26, 4},
    {"res2net50_14w_8s", {3, 4, 6, 3}, 14, 8},
    {"res2net101_26w_4s", {3, 4, 23, 3}, 26, 4},
};

struct Block {
  std::int64_t out;
  std::int64_t part;  ///< channels of one part
  std::int64_t scales;
  std::int64_t stride;
};

/// A bottleneck whose inner channels are split: each part but the last is convolved together with
/// the result of the part before. The first block of a stage keeps the parts apart.
TensorId block(NetBuilder& net, TensorId x, const Block& spec, bool first) {
  TensorId shortcut = x;
  if (first) shortcut = net.conv_bn(x, {.out = spec.out, .stride = spec.stride});
  const TensorId wide = net.conv_bn(x, {.out = spec.part * spec.scales}, kRelu);
  std::vector<TensorId> parts =
      net.split(wide, Ints(static_cast<std::size_t>(spec.scales), spec.part));
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (i > 0 && !first) parts[i] = net.add(parts[i - 1], parts[i]);
    parts[i] = net.conv_bn(parts[i], {.out = spec.part, .kernel = 3, .stride = spec.stride}, kRelu);
  }
  if (first) {
    parts.back() = net.average_pool(parts.back(), {.kernel = 3, .stride = spec.stride, .pad = 1});
  }
  const TensorId y = net.conv_bn(net.concat(parts), {.out = spec.out});
  return net.activate(net.add(y, shortcut), kRelu);
}

TensorId res2net(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  x = net.conv_bn(x, {.out = options.scaled(64), .kernel = 7, .stride = 2}, kRelu);
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  for (std::size_t stage = 0; stage < row.depth.size(); ++stage) {
    for (int i = 0; i < row.depth[stage]; ++i) {
      x = block(net, x,
                {.out = options.scaled(256 << stage),
                 .part = options.scaled(row.width << stage),
                 .scales = row.scales,
                 .stride = i == 0 && stage > 0 ? 2 : 1},
                i == 0);
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_res2net(ZooList& zoo) { add_rows(zoo, {.family = "res2net"}, kNetworks, res2net); }

}  // namespace fleetfit::graph
