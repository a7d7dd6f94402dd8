#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "fleetfit/core/random.h"
#include "fleetfit/cost/cost.h"

namespace fleetfit::cost {
namespace {

using namespace graph;

/// A graph in which only sizes matter: nodes of an operator with any number of inputs.
class SizedGraph {
 public:
  TensorId input(std::int64_t bytes) {
    const auto id = tensor(bytes);
    graph.inputs.push_back(id);
    return id;
  }

  TensorId node(std::vector<TensorId> inputs, std::int64_t bytes) {
    const auto id = tensor(bytes);
    graph.nodes.push_back({.name = std::to_string(id),
                           .op = Elementwise{ElementwiseKind::sum},
                           .inputs = std::move(inputs),
                           .outputs = {id}});
    return id;
  }

  Graph graph;

 private:
  TensorId tensor(std::int64_t bytes) {
    return graph.add_tensor({.name = "t", .dtype = DType::u8, .shape = Shape{bytes}});
  }
};

TEST(PeakMemory, OfAChainIsItsLargestNeighbours) {
  SizedGraph g;
  const auto x = g.input(10);
  const auto a = g.node({x}, 100);
  const auto b = g.node({a}, 30);
  g.graph.outputs = {g.node({b}, 5)};
  const auto peak = peak_activation_memory(g.graph);
  EXPECT_EQ(peak.bytes, 130);
  EXPECT_TRUE(peak.is_least);
}

TEST(PeakMemory, ASkipConnectionStaysAlive) {
  SizedGraph g;
  const auto x = g.input(50);
  const auto a = g.node({x}, 20);
  const auto b = g.node({a}, 60);
  g.graph.outputs = {g.node({x, b}, 50)};
  EXPECT_EQ(peak_activation_memory(g.graph).bytes, 50 + 60 + 50);
}

TEST(PeakMemory, FindsTheOrderOfBranchesThatNeedsLess) {
  // The branch with the large intermediate should run first, while nothing else is held.
  SizedGraph g;
  const auto x = g.input(10);
  const auto small = g.node({x}, 40);
  const auto small_end = g.node({small}, 30);
  const auto large = g.node({x}, 100);
  const auto large_end = g.node({large}, 5);
  g.graph.outputs = {g.node({small_end, large_end}, 10)};
  // File order: x + small_end + large = 140. The other: x + large + large_end = 115.
  EXPECT_EQ(peak_activation_memory(g.graph).bytes, 115);
}

TEST(PeakMemory, ViewsTakeNoMemory) {
  Graph graph;
  const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{2, 3}});
  const auto flat = graph.add_tensor({.name = "flat", .dtype = DType::f32, .shape = Shape{1, 6}});
  const auto y = graph.add_tensor({.name = "y", .dtype = DType::f32, .shape = Shape{1, 6}});
  graph.inputs = {x};
  graph.outputs = {y};
  graph.nodes = {{.name = "flatten", .op = Flatten{.axis = 0}, .inputs = {x}, .outputs = {flat}},
                 {.name = "relu", .op = Activate{kRelu}, .inputs = {flat}, .outputs = {y}}};
  EXPECT_EQ(peak_activation_memory(graph).bytes, 48);
}

TEST(PeakMemory, ConstantsDoNotCount) {
  SizedGraph g;
  const auto x = g.input(8);
  const auto w =
      g.graph.add_tensor({.name = "w",
                          .dtype = DType::u8,
                          .shape = Shape{1000},
                          .data = TensorData::generate({.dtype = DType::u8, .count = 1000})});
  g.graph.outputs = {g.node({x, w}, 8)};
  EXPECT_EQ(peak_activation_memory(g.graph).bytes, 16);
}

/// Memory of one order, counted afresh at every step.
std::int64_t peak_of_order(const Graph& graph, const std::vector<int>& order) {
  std::int64_t peak = 0;
  for (std::size_t now = 0; now < order.size(); ++now) {
    std::set<TensorId> alive;
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      bool made = std::count(graph.inputs.begin(), graph.inputs.end(), id) > 0;
      bool needed = std::count(graph.outputs.begin(), graph.outputs.end(), id) > 0;
      bool at_work = false;
      for (std::size_t step = 0; step < order.size(); ++step) {
        const auto& node = graph.nodes[static_cast<std::size_t>(order[step])];
        if (step <= now && node.outputs[0] == id) made = true;
        if (step >= now && std::count(node.inputs.begin(), node.inputs.end(), id) > 0)
          needed = true;
        if (step == now && node.outputs[0] == id) at_work = true;
      }
      if (made && (needed || at_work)) alive.insert(id);
    }
    std::int64_t bytes = 0;
    for (const auto id : alive) bytes += elements(*graph.tensor(id).shape);
    peak = std::max(peak, bytes);
  }
  return peak;
}

bool can_execute(const Graph& graph, const std::vector<int>& order) {
  std::set<TensorId> made(graph.inputs.begin(), graph.inputs.end());
  for (const int n : order) {
    const auto& node = graph.nodes[static_cast<std::size_t>(n)];
    if (!std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](TensorId id) { return made.contains(id); }))
      return false;
    made.insert(node.outputs[0]);
  }
  return true;
}

TEST(PeakMemory, IsTheLeastOverAllOrdersOfSmallGraphs) {
  core::Random random(3);
  for (int trial = 0; trial < 60; ++trial) {
    SizedGraph g;
    std::vector<TensorId> tensors{g.input(random.between(1, 50))};
    for (int n = 0; n < 7; ++n) {
      std::vector<TensorId> inputs{tensors[random.below(tensors.size())]};
      if (random.chance(0.4)) inputs.push_back(tensors[random.below(tensors.size())]);
      tensors.push_back(g.node(inputs, random.between(1, 50)));
    }
    g.graph.outputs = {tensors.back()};
    std::vector<int> order(7);
    std::iota(order.begin(), order.end(), 0);
    auto least = std::numeric_limits<std::int64_t>::max();
    do {
      if (can_execute(g.graph, order)) least = std::min(least, peak_of_order(g.graph, order));
    } while (std::next_permutation(order.begin(), order.end()));
    const auto found = peak_activation_memory(g.graph);
    EXPECT_EQ(found.bytes, least) << "trial " << trial;
    EXPECT_TRUE(found.is_least);
    EXPECT_TRUE(can_execute(g.graph, found.order));
    EXPECT_EQ(peak_of_order(g.graph, found.order), least);
  }
}

}  // namespace
}  // namespace fleetfit::cost
