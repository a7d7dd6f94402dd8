#pragma once

#include <string>
#include <utility>

#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/net_builder.h"

namespace fleetfit::elastic {

/// Two convolutions with so many channels between them; the image keeps its shape.
inline graph::Graph two_convolutions(std::int64_t inner, std::uint64_t seed) {
  graph::NetBuilder net("block", seed);
  const auto x = net.input("x", {1, 2, 4, 4});
  const auto y = net.conv_bn(x, {.out = inner, .kernel = 3}, {.kind = graph::ActivationKind::relu});
  net.output(net.conv_bn(y, {.out = 2, .kernel = 3}), "y");
  return std::move(net).finish().value();
}

inline graph::Graph classifier(std::int64_t classes) {
  graph::NetBuilder net("head", 9);
  const auto x = net.input("x", {1, 2, 4, 4});
  net.output(net.linear(net.flatten(net.global_average_pool(x)), classes), "classes");
  return std::move(net).finish().value();
}

/// Two blocks of convolutions that can be shrunk and merged, and a fixed classifier.
inline Supernet conv_supernet(std::string name = "conv") {
  using enum BranchKind;
  return {
      .name = std::move(name),
      .blocks = {{.name = "first",
                  .branches = {{.graph = two_convolutions(4, 1)},
                               {.kind = shrunk, .share = 0.5, .graph = two_convolutions(2, 2)},
                               {.kind = merged, .span = 2, .graph = two_convolutions(4, 3)}}},
                 {.name = "second",
                  .branches = {{.graph = two_convolutions(4, 4)},
                               {.kind = shrunk, .share = 0.5, .graph = two_convolutions(2, 5)},
                               {.kind = shrunk, .share = 0.25, .graph = two_convolutions(1, 6)}}},
                 {.name = "classifier", .branches = {{.graph = classifier(3)}}}}};
}

}  // namespace fleetfit::elastic
