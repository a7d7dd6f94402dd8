#include "fleetfit/graph/graph.h"

#include <gtest/gtest.h>

namespace fleetfit::graph {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(element_count({}).value(), 1);
  EXPECT_EQ(element_count({2, 3, 4}).value(), 24);
  EXPECT_EQ(element_count({2, 0, 4}).value(), 0);
}

TEST(Shape, RefusesAbsurdExtents) {
  EXPECT_EQ(element_count({-1}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(element_count({std::int64_t{1} << 62, 4}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(element_count({0, std::int64_t{1} << 62}).error().code, ErrorCode::invalid_input);
}

TEST(TensorData, GeneratedValuesDependOnSeedAndPositionAlone) {
  const auto a = TensorData::generate({.count = 100, .spread = 2, .seed = 7});
  const auto b = TensorData::generate({.count = 100, .spread = 2, .seed = 7});
  const auto c = TensorData::generate({.count = 100, .spread = 2, .seed = 8});
  EXPECT_EQ(a.size_bytes(), 400u);
  std::vector<std::byte> copied(400);
  a.copy_to(copied);
  EXPECT_TRUE(std::equal(copied.begin(), copied.end(), b.bytes().begin()));
  EXPECT_FALSE(a == c);
  for (const auto value : a.as<float>()) EXPECT_LE(std::abs(value), 2.0F);
}

TEST(TensorData, UnalignedViewsGiveAlignedBytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(17);
  const auto bytes = std::span<const std::byte>(*owner).subspan(1);
  const auto data = TensorData::view(bytes, owner);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.bytes().data()) % 8, 0u);
  EXPECT_EQ(data.size_bytes(), 16u);
}

/// x -> a -> y with the nodes given in any order.
Graph two_relus(bool reversed) {
  Graph graph;
  const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{1}});
  const auto a = graph.add_tensor({.name = "a"});
  const auto y = graph.add_tensor({.name = "y"});
  graph.inputs = {x};
  graph.outputs = {y};
  graph.nodes = {{.name = "first", .op = Activate{kRelu}, .inputs = {x}, .outputs = {a}},
                 {.name = "second", .op = Activate{kRelu}, .inputs = {a}, .outputs = {y}}};
  if (reversed) std::swap(graph.nodes[0], graph.nodes[1]);
  return graph;
}

TEST(SortNodes, PutsProducersFirst) {
  auto graph = two_relus(true);
  ASSERT_TRUE(sort_nodes(graph));
  EXPECT_EQ(graph.nodes[0].name, "first");
}

TEST(SortNodes, NamesANodeOfACycle) {
  auto graph = two_relus(false);
  graph.nodes[0].inputs = {graph.nodes[1].outputs[0]};
  const auto sorted = sort_nodes(graph);
  ASSERT_FALSE(sorted);
  EXPECT_EQ(sorted.error().message,
            "node first (Relu) waits for its own result: the graph has a cycle");
}

TEST(SortNodes, NamesATensorThatNothingMakes) {
  auto graph = two_relus(false);
  graph.inputs.clear();
  EXPECT_EQ(sort_nodes(graph).error().message,
            "node first (Relu) reads tensor 'x', which nothing makes");
}

}  // namespace
}  // namespace fleetfit::graph
