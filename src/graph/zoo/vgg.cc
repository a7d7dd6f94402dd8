#include <array>

#include "fleetfit/graph/net_builder.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

constexpr std::array<std::int64_t, 5> kStageChannels{64, 128, 256, 512, 512};

enum class Norm : std::uint8_t { none, batch };

struct Vgg {
  const char* name;
  std::array<int, 5> depths;  ///< convolutions of each stage
  Norm norm = Norm::none;
};

constexpr Vgg kVggs[] = {
    {"vgg11", {1, 1, 2, 2, 2}}, {"vgg11_bn", {1, 1, 2, 2, 2}, Norm::batch},
    {"vgg13", {2, 2, 2, 2, 2}}, {"vgg13_bn", {2, 2, 2, 2, 2}, Norm::batch},
    {"vgg16", {2, 2, 3, 3, 3}}, {"vgg16_bn", {2, 2, 3, 3, 3}, Norm::batch},
    {"vgg19", {2, 2, 4, 4, 4}}, {"vgg19_bn", {2, 2, 4, 4, 4}, Norm::batch},
};

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const Vgg& vgg) {
  for (std::size_t stage = 0; stage < vgg.depths.size(); ++stage) {
    const std::int64_t out = options.scaled(kStageChannels[stage]);
    for (int i = 0; i < vgg.depths[stage]; ++i) {
      x = net.conv(x, {.out = out, .kernel = 3, .bias = true});
      if (vgg.norm == Norm::batch) x = net.batch_norm(x);
      x = net.activate(x, kRelu);
    }
    x = net.max_pool(x, {.kernel = 2, .stride = 2});
  }
  x = net.flatten(x);
  for (int i = 0; i < 2; ++i) x = net.activate(net.linear(x, options.scaled(4096)), kRelu);
  return net.linear(x, options.classes);
}

}  // namespace

void add_vgg(ZooList& zoo) { add_rows(zoo, {.family = "vgg"}, kVggs, build); }

}  // namespace fleetfit::graph
