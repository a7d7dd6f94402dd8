#include "pass_testing.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FoldConstants, ComputesAChainOfConstants) {
  HandMade h;
  const auto x = h.input("x", {2, 3});
  const auto sum = h.node(Elementwise{ElementwiseKind::add}, {h.floats({3}, 1), h.floats({3}, 2)});
  const auto root = h.node(Unary{UnaryKind::abs}, {sum});
  h.output(h.node(Elementwise{ElementwiseKind::mul}, {x, root}), "y");
  EXPECT_THAT(node_types(after_pass(h.finish(), "fold_constants")), ElementsAre("Mul"));
}

TEST(FoldConstants, FoldsTheShapeOfATensorAndWhatIsComputedFromIt) {
  HandMade h;
  const auto x = h.input("x", {2, 3, 4});
  const auto shape = h.node(ShapeOf{.start = 1}, {x});
  const auto product = h.node(Reduce{.kind = ReduceKind::prod, .axes = {0}}, {shape});
  const auto target = h.node(Concat{0}, {h.ints({2}), product});
  h.output(h.node(Reshape{}, {x, target}), "y");
  const auto after = after_pass(h.finish(), "fold_constants");
  ASSERT_THAT(node_types(after), ElementsAre("Reshape"));
  EXPECT_EQ(constant_ints(after, after.nodes[0].inputs[1]), (Ints{2, 12}));
}

TEST(FoldConstants, TakesConstantNodesIn) {
  HandMade h;
  const auto x = h.input("x", {2});
  const auto constant = h.node(Constant{}, {});
  h.graph.tensor(constant) = {.name = "c",
                              .dtype = DType::f32,
                              .shape = Shape{2},
                              .data = TensorData::copy(std::vector<float>{1, 2})};
  h.output(h.node(Elementwise{ElementwiseKind::add}, {x, constant}), "y");
  EXPECT_THAT(node_types(after_pass(h.finish(), "fold_constants")), ElementsAre("Add"));
}

TEST(FoldConstants, LeavesLargeFillsToBeMadeWhenRead) {
  HandMade h;
  // 2^38 bytes: writing them out would not end well.
  const auto filled = h.node(ConstantOfShape{DType::f32, 0.5}, {h.ints({1 << 18, 1 << 18})});
  h.output(filled, "y");
  auto graph = h.finish();
  ASSERT_TRUE(run_pass(graph, "fold_constants").value());
  EXPECT_THAT(graph.nodes, IsEmpty());
  EXPECT_EQ(graph.tensor(graph.outputs[0]).data->size_bytes(), std::size_t{1} << 38);
}

TEST(FoldConstants, LeavesLargeResultsToTheDevice) {
  HandMade h;
  const auto x = h.input("x", {1});
  const auto row = h.node(Expand{}, {h.floats({1, 1}, 1), h.ints({6000, 6000})});
  h.output(h.node(Elementwise{ElementwiseKind::mul}, {x, row}), "y");
  auto graph = h.finish();
  EXPECT_FALSE(run_pass(graph, "fold_constants").value());
}

TEST(FoldConstants, KeepsAnOutputThatIsConstant) {
  HandMade h;
  h.input("x", {1});
  h.output(h.node(Unary{UnaryKind::neg}, {h.floats({3}, 1)}), "y");
  const auto after = after_pass(h.finish(), "fold_constants");
  EXPECT_THAT(after.nodes, IsEmpty());
}

TEST(FoldConstants, LeavesQuantizedWeightsQuantized) {
  HandMade h;
  const auto x = h.input("x", {1, 2});
  const auto weights =
      h.graph.add_tensor({.name = "w",
                          .dtype = DType::i8,
                          .shape = Shape{2, 2},
                          .data = TensorData::copy(std::vector<std::int8_t>{1, 2, 3, 4})});
  const auto scale = h.floats({}, 1, 0.5, 0);
  const auto real = h.node(DequantizeLinear{}, {weights, scale});
  h.output(h.node(MatMul{}, {x, real}), "y");
  expect_untouched(h.finish(), "fold_constants");
}

}  // namespace
}  // namespace fleetfit::graph
