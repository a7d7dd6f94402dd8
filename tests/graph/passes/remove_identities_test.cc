#include "pass_testing.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;

TEST(RemoveIdentities, DropsWhatChangesNothing) {
  NetBuilder b("net", 1);
  auto x = b.input("x", {1, 4, 6, 6});
  x = b.activate(x, kRelu);
  x = b.node(Identity{}, {x});
  x = b.node(Dropout{}, {x});
  x = b.node(Cast{DType::f32}, {x});
  x = b.reshape(x, {1, 4, 6, 6});
  x = b.transpose(x, {0, 1, 2, 3});
  x = b.pad(x, 0, 0, 0, 0);
  x = b.slice(x, 1, 0, 4);
  x = b.concat({x});
  x = b.resize(x, 1.0, ResizeMode::linear);
  x = b.node(Elementwise{ElementwiseKind::sum}, {x});
  x = b.activate(x, kSigmoid);
  b.output(x, "y");
  EXPECT_THAT(node_types(after_pass(finished(std::move(b)), "remove_identities")),
              ElementsAre("Relu", "Sigmoid"));
}

TEST(RemoveIdentities, LetsTheLayerMakeTheNamedOutput) {
  NetBuilder b("net", 1);
  const auto x = b.activate(b.input("x", {1, 4}), kRelu);
  b.output(b.node(Identity{}, {x}), "y");
  const auto after = after_pass(finished(std::move(b)), "remove_identities");
  EXPECT_THAT(node_types(after), ElementsAre("Relu"));
  EXPECT_EQ(after.tensor(after.outputs[0]).name, "y");
}

TEST(RemoveIdentities, KeepsACopyWhereNamesNeedIt) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 4});
  const auto y = b.activate(x, kRelu);
  b.output(b.node(Identity{}, {x}), "copy of the input");
  b.output(y, "y");
  b.output(b.node(Identity{}, {y}), "copy of the output");
  expect_untouched(finished(std::move(b)), "remove_identities");
}

TEST(RemoveIdentities, KeepsOperatorsThatKeepTheShapeOnly) {
  HandMade h;
  const auto x = h.input("x", {1, 1, 10});
  const auto reversed =
      h.node(Slice{}, {x, h.ints({-1}), h.ints({-100}), h.ints({2}), h.ints({-1})});
  const auto stretched =
      h.node(Resize{.mode = ResizeMode::linear}, {reversed, kNoTensor, kNoTensor, kNoTensor});
  h.graph.nodes.back().inputs[2] =
      h.graph.add_tensor({.name = "scales",
                          .dtype = DType::f32,
                          .shape = Shape{3},
                          .data = TensorData::copy(std::vector<float>{1, 1, 1.05F})});
  h.output(h.node(Transpose{{1, 0, 2}}, {stretched}), "y");
  expect_untouched(h.finish(), "remove_identities");
}

TEST(MergeMoves, CancelsInverseTransposes) {
  NetBuilder b("net", 1);
  auto x = b.activate(b.input("x", {2, 3, 4, 5}), kRelu);
  x = b.transpose(b.transpose(x, {0, 2, 3, 1}), {0, 3, 1, 2});
  b.output(b.activate(x, kSigmoid), "y");
  EXPECT_THAT(node_types(after_pass(finished(std::move(b)), "merge_moves")),
              ElementsAre("Relu", "Sigmoid"));
}

TEST(MergeMoves, MakesOneTransposeOfThree) {
  NetBuilder b("net", 1);
  auto x = b.input("x", {2, 3, 4, 5});
  x = b.transpose(b.transpose(b.transpose(x, {1, 0, 2, 3}), {0, 2, 3, 1}), {3, 2, 1, 0});
  b.output(x, "y");
  EXPECT_THAT(node_types(after_pass(finished(std::move(b)), "merge_moves")),
              ElementsAre("Transpose"));
}

TEST(MergeMoves, MakesOneReshapeThatStillTakesAnyBatch) {
  NetBuilder b("net", 1);
  auto x = b.input("x", {1, 3, 4, 5});
  x = b.flatten(b.reshape(x, {0, 12, 5}));
  b.output(x, "y");
  auto after = after_pass(finished(std::move(b)), "merge_moves");
  EXPECT_THAT(node_types(after), ElementsAre("Reshape"));
  ASSERT_TRUE(bind_dimensions(after, {{"N", 4}}));
  EXPECT_EQ(after.tensor(after.outputs[0]).shape, (Shape{4, 60}));
}

TEST(MergeMoves, ReadsATransposeOfSingleElementsAsReshape) {
  NetBuilder b("net", 1);
  auto x = b.input("x", {2, 8, 1, 1});
  b.output(b.flatten(b.transpose(x, {0, 2, 3, 1})), "y");
  EXPECT_THAT(node_types(after_pass(finished(std::move(b)), "merge_moves")),
              ElementsAre("Reshape"));
}

TEST(MergeMoves, LeavesTransposeAndReshapeThatDoNotCommute) {
  NetBuilder b("net", 1);
  auto x = b.input("x", {2, 3, 4, 5});
  b.output(b.flatten(b.transpose(x, {0, 2, 3, 1})), "y");
  expect_untouched(finished(std::move(b)), "merge_moves");
}

}  // namespace
}  // namespace fleetfit::graph
