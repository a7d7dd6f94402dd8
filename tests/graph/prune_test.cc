#include <gmock/gmock.h>

#include <cmath>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/graph/shrink.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Channels that each convolution makes.
std::vector<std::int64_t> widths(const Graph& graph) {
  std::vector<std::int64_t> found;
  for (const auto& node : graph.nodes)
    if (std::holds_alternative<Conv>(node.op))
      found.push_back((*graph.tensor(node.outputs[0]).shape)[1]);
  return found;
}

/// Six convolutions in a row, the last one makes the output.
Graph chain() {
  NetBuilder net("chain", 1);
  auto x = net.input("x", {1, 3, 8, 8});
  for (const std::int64_t out : {32, 32, 64, 64, 128, 10}) x = net.conv(x, {.out = out});
  net.output(x, "y");
  return std::move(net).finish().value();
}

TEST(Pruned, EachStretchKeepsItsShareOfChannels) {
  const std::vector<double> shares = {1, 0.5, 0.25};
  const auto graph = pruned(chain(), shares).value();
  EXPECT_THAT(widths(graph), ElementsAre(32, 32, 32, 32, 32, 10));
  EXPECT_TRUE(validate(graph));
}

TEST(Pruned, OneShareHoldsForAll) {
  EXPECT_THAT(widths(pruned(chain(), std::vector<double>{0.5}).value()),
              ElementsAre(16, 16, 32, 32, 64, 10));
}

TEST(Pruned, AShortcutTakesTheShareOfItsBeginning) {
  NetBuilder net("shortcut", 1);
  const auto x = net.conv(net.input("x", {1, 3, 8, 8}), {.out = 32});
  const auto inner = net.conv(x, {.out = 64});
  net.output(net.conv(net.add(x, net.conv(inner, {.out = 32})), {.out = 10}), "y");
  const std::vector<double> shares = {0.5, 0.25};
  const auto graph = pruned(std::move(net).finish().value(), shares).value();
  EXPECT_THAT(widths(graph), ElementsAre(16, 32, 16, 10));
}

TEST(Pruned, NothingChangesWhereAllStay) {
  const std::vector<double> shares = {1, 1, 1};
  EXPECT_THAT(widths(pruned(chain(), shares).value()), ElementsAre(32, 32, 64, 64, 128, 10));
}

TEST(Pruned, RefusesSharesThatAreNone) {
  for (const double share : {0.0, -0.5, 1.5, std::nan("")})
    EXPECT_THAT(pruned(chain(), std::vector<double>{1, share}).error().message,
                HasSubstr("is no share of channels"));
  EXPECT_FALSE(pruned(chain(), {}));
}

TEST(Pruned, NetworksOfTheZooStillCompute) {
  const std::vector<double> shares = {1, 0.75, 0.5};
  for (const auto* name : {"resnet20", "mobilenet_v2_small"}) {
    const auto graph = pruned(build_zoo_network(name).value(), shares);
    ASSERT_TRUE(graph) << name << ": " << graph.error().message;
    EXPECT_TRUE(validate(*graph)) << name;
    const auto& input = graph->tensor(graph->inputs[0]);
    std::size_t count = 1;
    for (const auto extent : *input.shape) count *= static_cast<std::size_t>(extent);
    const std::vector<Value> values{{.shape = *input.shape,
                                     .data = TensorData::copy(std::vector<float>(count, 0.5F)),
                                     .quantization = {}}};
    EXPECT_TRUE(evaluate(*graph, values)) << name;
  }
}

}  // namespace
}  // namespace fleetfit::graph
