#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

TensorId lenet5(NetBuilder& net, TensorId x, const NetOptions& options) {
  const auto conv = [&](ConvSpec spec) {
    spec.kernel = 5;
    spec.bias = true;
    x = net.average_pool(net.activate(net.conv(x, spec), kTanh), {.kernel = 2, .stride = 2});
  };
  const auto dense = [&](std::int64_t out) { x = net.activate(net.linear(x, out), kTanh); };
  conv({.out = options.scaled(6), .pad = 2});
  conv({.out = options.scaled(16), .pad = 0});
  x = net.flatten(x);
  dense(options.scaled(120));
  dense(options.scaled(84));
  return net.linear(x, options.classes);
}

}  // namespace

void add_lenet(ZooList& zoo) {
  zoo.push_back({.name = "lenet5",
                 .family = "lenet",
                 .image = 28,
                 .classes = 10,
                 .channels = 1,
                 .build = lenet5});
}

}  // namespace fleetfit::graph
