#include "fleetfit/graph/structure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/graph/batch.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {
namespace {

Graph small_net(std::string_view name = "resnet20", const ZooOptions& options = {}) {
  return build_zoo_network(name, options).value();
}

Graph renamed(Graph graph) {
  graph.name = "another";
  for (auto& node : graph.nodes) node.name = "n_" + node.name;
  for (auto& tensor : graph.tensors) tensor.name = "t_" + tensor.name;
  return graph;
}

TEST(Structure, IsThatOfTheNetworkNotOfNamesAndWeights) {
  const auto net = small_net();
  EXPECT_EQ(structure_id(net), structure_id(renamed(net)));
  EXPECT_EQ(structure_id(net), structure_id(small_net("resnet20", {.seed = 7})));
  EXPECT_EQ(structure_id(net).size(), 64U);
}

TEST(Structure, SurvivesTheWayThroughAFile) {
  const auto scratch = core::ScratchFolder::create().value();
  const auto file = scratch.path() / "net.onnx";
  const auto net = small_net();
  ASSERT_TRUE(export_onnx_file(net, file, core::Durability::scratch));
  EXPECT_EQ(structure_id(import_model(file).value().graph), structure_id(net));
}

TEST(Structure, DiffersWithDepthWidthClassesAndImage) {
  std::vector<std::string> ids = {structure_id(small_net("resnet20")),
                                  structure_id(small_net("resnet32")),
                                  structure_id(small_net("resnet20", {.width = 0.5})),
                                  structure_id(small_net("resnet20", {.classes = 11})),
                                  structure_id(small_net("resnet20", {.image = 40}))};
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

TEST(Structure, DiffersWithOneAttributeOrActivation) {
  const auto net = small_net();
  auto conv = std::ranges::find_if(
      net.nodes, [](const Node& node) { return std::holds_alternative<Conv>(node.op); });
  const auto at = static_cast<std::size_t>(conv - net.nodes.begin());
  auto padded = net;
  std::get<Conv>(padded.nodes[at].op).window.auto_pad = AutoPad::same_upper;
  auto activated = net;
  activated.nodes[at].activation = kSigmoid;
  EXPECT_NE(structure_id(padded), structure_id(net));
  EXPECT_NE(structure_id(activated), structure_id(net));
}

/// Two branches of one input, added.
Graph two_branches(bool swapped) {
  Graph graph;
  const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{1, 4}});
  const auto a = graph.add_tensor({.name = "a", .dtype = DType::f32, .shape = Shape{1, 4}});
  const auto b = graph.add_tensor({.name = "b", .dtype = DType::f32, .shape = Shape{1, 4}});
  const auto y = graph.add_tensor({.name = "y", .dtype = DType::f32, .shape = Shape{1, 4}});
  graph.inputs = {x};
  graph.outputs = {y};
  Node first{.name = "first", .op = Activate{kRelu}, .inputs = {x}, .outputs = {a}};
  Node second{.name = "second", .op = Activate{kTanh}, .inputs = {x}, .outputs = {b}};
  if (swapped) std::swap(first, second);
  graph.nodes = {
      first, second, {.name = "sum", .op = Elementwise{}, .inputs = {a, b}, .outputs = {y}}};
  return graph;
}

TEST(Structure, DoesNotDependOnTheOrderOfIndependentNodes) {
  EXPECT_EQ(structure_id(two_branches(false)), structure_id(two_branches(true)));
  auto other_way = two_branches(false);
  std::swap(other_way.nodes[2].inputs[0], other_way.nodes[2].inputs[1]);
  EXPECT_NE(structure_id(other_way), structure_id(two_branches(false)));
}

TEST(Structure, TellsASharedResultFromTwoAlike) {
  auto shared = two_branches(false);
  shared.nodes[1].op = Activate{kRelu};
  auto apart = shared;
  shared.nodes[2].inputs = {shared.nodes[0].outputs[0], shared.nodes[0].outputs[0]};
  EXPECT_NE(structure_id(shared), structure_id(apart));
}

TEST(Structure, CountsShapesThatAreGivenAsConstants) {
  const auto reshaped = [](const Ints& to) {
    Graph graph;
    const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{1, 4}});
    const auto shape = graph.add_ints("shape", to);
    const auto y = graph.add_tensor({.name = "y", .dtype = DType::f32});
    graph.inputs = {x};
    graph.outputs = {y};
    graph.nodes = {{.name = "r", .op = Reshape{}, .inputs = {x, shape}, .outputs = {y}}};
    return graph;
  };
  EXPECT_NE(structure_id(reshaped({1, 2, 2})), structure_id(reshaped({2, 1, 2})));
  EXPECT_EQ(structure_id(reshaped({1, 2, 2})), structure_id(reshaped({1, 2, 2})));
}

/// The first row of a result.
std::vector<float> row(const Value& value, std::int64_t index) {
  const auto all = value.data.as<float>();
  const auto width = static_cast<std::ptrdiff_t>(elements(value.shape) / value.shape[0]);
  return {all.begin() + index * width, all.begin() + (index + 1) * width};
}

/// The input of a batch whose rows are all that of one sample.
Value repeated(const Value& sample, std::int64_t times) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < times; ++i)
    std::ranges::copy(sample.data.as<float>(), std::back_inserter(all));
  auto shape = sample.shape;
  shape[0] *= times;
  return {.dtype = DType::f32, .shape = shape, .data = TensorData::copy(all)};
}

TEST(WithBatch, GivesEachSampleItsAnswer) {
  // mlp_mixer and shufflenet have Reshape, Transpose and Split on the way.
  for (const auto* name : {"lenet5", "shufflenet_v2_x0_5"}) {
    const auto net = build_zoo_network(name, {.classes = 4, .image = 32});
    ASSERT_TRUE(net) << net.error().message;
    const auto three = with_batch(*net, 3);
    ASSERT_TRUE(three) << three.error().message;
    const auto sample = random_inputs(*net, 1).front();
    const auto one_answer = evaluate(*net, std::vector{sample}).value().front();
    const auto answers = evaluate(*three, std::vector{repeated(sample, 3)}).value().front();
    ASSERT_EQ(answers.shape, (Shape{3, 4}));
    EXPECT_EQ(row(answers, 0), row(one_answer, 0));
    EXPECT_EQ(row(answers, 2), row(one_answer, 0));
  }
}

TEST(WithBatch, ChangesShapesThatTheFileFixes) {
  Graph graph;
  const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{1, 4}});
  const auto shape = graph.add_ints("shape", {1, 2, 2});
  const auto y = graph.add_tensor({.name = "y", .dtype = DType::f32, .shape = Shape{1, 2, 2}});
  graph.inputs = {x};
  graph.outputs = {y};
  graph.nodes = {{.name = "r", .op = Reshape{}, .inputs = {x, shape}, .outputs = {y}}};
  const auto eight = with_batch(graph, 8).value();
  EXPECT_EQ(eight.tensor(eight.outputs[0]).shape, (Shape{8, 2, 2}));
  EXPECT_EQ(batch_of(eight), 8);
  EXPECT_EQ(structure_id(with_batch(eight, 1).value()), structure_id(graph));
}

TEST(WithBatch, RefusesWhatMixesItsSamples) {
  Graph graph;
  const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{1, 4}});
  const auto y = graph.add_tensor({.name = "y", .dtype = DType::f32, .shape = Shape{1, 4}});
  graph.inputs = {x};
  graph.outputs = {y};
  graph.nodes = {
      {.name = "sum", .op = Reduce{ReduceKind::sum, {0}}, .inputs = {x}, .outputs = {y}}};
  const auto refused = with_batch(graph, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message.find("'y'"), std::string::npos);
}

}  // namespace
}  // namespace fleetfit::graph
