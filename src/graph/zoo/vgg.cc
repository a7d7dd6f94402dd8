#include <array>
#include <string>

#include "fleetfit/graph/net_builder.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {

namespace {

constexpr std::array<std::int64_t, 5> kStageChannels{64, 128, 256, 512, 512};

enum class Norm : std::uint8_t { none, batch };

struct Vgg {
  const char* name;
  std::array<int, 5> depths;  ///< convolutions of each stage
};

constexpr Vgg kVggs[] = {
    {"vgg11", {1, 1, 2, 2, 2}},
    {"vgg13", {2, 2, 2, 2, 2}},
    {"vgg16", {2, 2, 3, 3, 3}},
    {"vgg19", {2, 2, 4, 4, 4}},
};

TensorId build(const Vgg& vgg, Norm norm, NetBuilder& net, TensorId x, const NetOptions& options) {
  for (std::size_t stage = 0; stage < vgg.depths.size(); ++stage) {
    const std::int64_t out = options.scaled(kStageChannels[stage]);
    for (int i = 0; i < vgg.depths[stage]; ++i) {
      x = net.conv(x, {.out = out, .kernel = 3, .bias = true});
      if (norm == Norm::batch) x = net.batch_norm(x);
      x = net.activate(x, kRelu);
    }
    x = net.max_pool(x, {.kernel = 2, .stride = 2});
  }
  x = net.flatten(x);
  for (int i = 0; i < 2; ++i) x = net.activate(net.linear(x, options.scaled(4096)), kRelu);
  return net.linear(x, options.classes);
}

void add(ZooList& zoo, const Vgg& vgg, std::string name, Norm norm) {
  zoo.push_back({.name = std::move(name),
                 .family = "vgg",
                 .build = [&vgg, norm](NetBuilder& net, TensorId x, const NetOptions& options) {
                   return build(vgg, norm, net, x, options);
                 }});
}

}  // namespace

void add_vgg(ZooList& zoo) {
  for (const Vgg& vgg : kVggs) {
    add(zoo, vgg, vgg.name, Norm::none);
    add(zoo, vgg, std::string(vgg.name) + "_bn", Norm::batch);
  }
}

}  // namespace fleetfit::graph
