#include "fleetfit/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <thread>
#include <vector>

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

TEST(TensorData, DerivedValuesAreMadeWhenAskedForAndKeptOnce) {
  int calls = 0;
  const auto added = std::make_shared<int>(3);
  const auto from = TensorData::copy(std::vector<std::uint8_t>{1, 2});
  const auto data = TensorData::derive(from, [&calls, added](std::span<std::byte> bytes) {
    ++calls;
    for (auto& byte : bytes) byte = static_cast<std::byte>(std::to_integer<int>(byte) + *added);
  });
  const auto shared = data;
  EXPECT_EQ(data.size_bytes(), 2U);
  EXPECT_EQ(calls, 0);

  std::vector<std::byte> copied(2);
  data.copy_to(copied);  // keeps nothing
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(added.use_count(), 2);
  EXPECT_EQ(copied, (std::vector{std::byte{4}, std::byte{5}}));

  EXPECT_TRUE(std::ranges::equal(data.bytes(), copied));
  EXPECT_EQ(shared.bytes().data(), data.bytes().data());
  shared.copy_to(copied);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(copied.back(), std::byte{5});
  EXPECT_EQ(added.use_count(), 1);  // what they were made of is let go
  EXPECT_EQ(from.as<std::uint8_t>()[0], 1);
}

void negate(std::span<std::byte> bytes) {
  for (auto& byte : bytes) byte = ~byte;
}

TEST(TensorData, DerivedValuesEqualThoseThatAreStored) {
  const auto from = TensorData::copy(std::vector<std::uint8_t>{0, 1, 255});
  const auto expected = TensorData::copy(std::vector<std::uint8_t>{255, 254, 0});
  EXPECT_EQ(TensorData::derive(from, negate), expected);
  EXPECT_EQ(TensorData::derive(from, negate), TensorData::derive(from, negate));
  EXPECT_FALSE(TensorData::derive(from, negate) == from);
  EXPECT_TRUE(TensorData::derive(TensorData::own({}), negate).bytes().empty());
}

TEST(TensorData, ManyDerivationsOfOneAnotherNeedNoDeepStack) {
  auto data = TensorData::copy(std::vector<std::uint8_t>{7});
  for (int i = 0; i < 300'001; ++i) data = TensorData::derive(data, negate);
  EXPECT_EQ(data.as<std::uint8_t>()[0], 255 - 7);
}

TEST(TensorData, DerivedValuesAreTheSameForAllThreads) {
  const auto source = TensorData::generate({.count = 5'000, .spread = 1, .seed = 3});
  const auto data = TensorData::derive(TensorData::derive(source, negate), negate);
  std::vector<std::vector<std::byte>> seen(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      threads.emplace_back([&, i] {
        seen[i].resize(data.size_bytes());
        if (i % 2 == 0) data.copy_to(seen[i]);
        if (i % 2 == 1) std::ranges::copy(data.bytes(), seen[i].begin());
      });
    }
  }
  for (const auto& one : seen) EXPECT_TRUE(std::ranges::equal(one, source.bytes()));
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

TEST(SortNodes, LeavesAnOrderThatIsFine) {
  auto graph = two_relus(false);
  graph.nodes[1].inputs = {graph.nodes[0].inputs[0]};  // either may come first
  ASSERT_TRUE(sort_nodes(graph));
  EXPECT_EQ(graph.nodes[0].name, "first");
  EXPECT_EQ(graph.nodes[1].name, "second");
}

TEST(Consumers, HoldsEveryReaderOnceAndInOrder) {
  auto graph = two_relus(false);
  const auto x = graph.nodes[0].inputs[0];
  const auto a = graph.nodes[0].outputs[0];
  const auto square = graph.add_tensor({.name = "square"});
  graph.nodes.push_back({.name = "third",
                         .op = Elementwise{ElementwiseKind::mul},
                         .inputs = {a, a, kNoTensor},
                         .outputs = {square}});
  const Consumers readers(graph);
  const auto of = [&](TensorId id) {
    const auto found = readers[static_cast<std::size_t>(id)];
    return std::vector<int>(found.begin(), found.end());
  };
  EXPECT_EQ(of(x), std::vector{0});
  EXPECT_EQ(of(a), (std::vector{1, 2}));
  EXPECT_TRUE(of(square).empty());
}

}  // namespace
}  // namespace fleetfit::graph
