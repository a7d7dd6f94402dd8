#include "fleetfit/graph/net_builder.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {

namespace {

TensorId alexnet(NetBuilder& net, TensorId x, const NetOptions& options) {
  const auto conv = [&](ConvSpec spec) {
    spec.out = options.scaled(spec.out);
    spec.bias = true;
    x = net.activate(net.conv(x, spec), kRelu);
  };
  const auto pool = [&] { x = net.max_pool(x, {.kernel = 3, .stride = 2}); };

  conv({.out = 64, .kernel = 11, .stride = 4, .pad = 2});
  pool();
  conv({.out = 192, .kernel = 5});
  pool();
  for (const std::int64_t out : {384, 256, 256}) conv({.out = out, .kernel = 3});
  pool();
  x = net.flatten(x);
  for (int i = 0; i < 2; ++i) x = net.activate(net.linear(x, options.scaled(4096)), kRelu);
  return net.linear(x, options.classes);
}

}  // namespace

void add_alexnet(ZooList& zoo) {
  zoo.push_back({.name = "alexnet", .family = "alexnet", .build = alexnet});
}

}  // namespace fleetfit::graph
