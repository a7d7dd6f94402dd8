#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::array<int, 4> modules;
  double width;  ///< of everything behind the stem
};

constexpr Network kNetworks[] = {
    {"vovnet27_slim", {1, 1, 1, 1}, 0.5},
    {"vovnet39", {1, 1, 2, 2}, 1},
    {"vovnet57", {1, 1, 4, 3}, 1},
};

/// Five convolutions in a row; all that they made is put together once, at the end.
TensorId one_shot_aggregation(NetBuilder& net, TensorId x, std::int64_t inner, std::int64_t out) {
  std::vector<TensorId> made = {x};
  for (int i = 0; i < 5; ++i) {
    made.push_back(net.conv_bn(made.back(), {.out = inner, .kernel = 3}, kRelu));
  }
  return net.conv_bn(net.concat(made), {.out = out}, kRelu);
}

TensorId vovnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const std::int64_t first = options.scaled(64);
  x = net.conv_bn(x, {.out = first, .kernel = 3, .stride = 2}, kRelu);
  x = net.conv_bn(x, {.out = first, .kernel = 3}, kRelu);
  x = net.conv_bn(x, {.out = options.scaled(128), .kernel = 3, .stride = 2}, kRelu);
  const double width = row.width * options.width;
  for (std::size_t stage = 0; stage < row.modules.size(); ++stage) {
    const auto index = static_cast<std::int64_t>(stage);
    const std::int64_t inner = scaled_channels(128 + 32 * index, width);
    const std::int64_t out = scaled_channels(256 * (index + 1), width);
    if (stage > 0) x = net.max_pool(x, {.kernel = 3, .stride = 2, .ceil_mode = true});
    x = one_shot_aggregation(net, x, inner, out);
    for (int i = 1; i < row.modules[stage]; ++i) {
      x = net.add(one_shot_aggregation(net, x, inner, out), x);
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_vovnet(ZooList& zoo) { add_rows(zoo, {.family = "vovnet"}, kNetworks, vovnet); }

}  // namespace fleetfit::graph
