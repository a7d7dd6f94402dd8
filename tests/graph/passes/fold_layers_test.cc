#include "pass_testing.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;

// A batch norm with parameters that would show if one were mistaken for another.
TensorId batch_norm(HandMade& h, TensorId x, std::int64_t channels, Layout layout) {
  return h.node(BatchNorm{1e-3F, layout},
                {x, h.floats({channels}, 11), h.floats({channels}, 12), h.floats({channels}, 13),
                 h.floats({channels}, 14, 2.0, 1.0)});
}

Window window(std::int64_t kernel, std::size_t dimensions = 2) {
  return {.kernel = Ints(dimensions, kernel),
          .strides = Ints(dimensions, 1),
          .dilations = Ints(dimensions, 1),
          .pads_begin = Ints(dimensions, 1),
          .pads_end = Ints(dimensions, 0)};
}

TEST(FoldBatchNorm, GoesIntoConvolutionsOfBothLayouts) {
  HandMade h;
  const auto x = h.input("x", {1, 4, 5, 5});
  const auto first = h.node(Conv{window(3), 2}, {x, h.floats({6, 2, 3, 3}, 1)});
  const auto a = batch_norm(h, first, 6, Layout::nchw);
  const auto turned = h.node(Transpose{{0, 2, 3, 1}}, {a});
  const auto second = h.node(Conv{window(2), 1, Layout::nhwc},
                             {turned, h.floats({3, 2, 2, 6}, 2), h.floats({3}, 3)});
  h.output(batch_norm(h, second, 3, Layout::nhwc), "y");
  EXPECT_THAT(node_types(after_pass(h.finish(), "fold_batch_norm")),
              ElementsAre("Conv", "Transpose", "Conv"));
}

TEST(FoldBatchNorm, GoesIntoTransposedConvolutionsWithGroups) {
  for (const auto layout : {Layout::nchw, Layout::nhwc}) {
    HandMade h;
    const bool nchw = layout == Layout::nchw;
    const auto x = h.input("x", nchw ? Shape{1, 4, 3, 3} : Shape{1, 3, 3, 4});
    const auto weights = h.floats(nchw ? Shape{4, 3, 2, 2} : Shape{6, 2, 2, 2}, 1);
    const auto up = h.node(
        ConvTranspose{.window = window(2), .groups = 2, .output_padding = {0, 0}, .layout = layout},
        {x, weights});
    h.output(batch_norm(h, up, 6, layout), "y");
    EXPECT_THAT(node_types(after_pass(h.finish(), "fold_batch_norm")),
                ElementsAre("ConvTranspose"));
  }
}

TEST(FoldBatchNorm, GoesIntoDenseLayers) {
  for (const bool transposed : {false, true}) {
    HandMade h;
    const auto x = h.input("x", {2, 4});
    const auto weights = h.floats(transposed ? Shape{5, 4} : Shape{4, 5}, 1);
    const auto dense = h.node(Gemm{.alpha = 0.5F, .beta = 2, .trans_b = transposed},
                              {x, weights, h.floats({5}, 2)});
    h.output(batch_norm(h, dense, 5, Layout::nchw), "y");
    EXPECT_THAT(node_types(after_pass(h.finish(), "fold_batch_norm")), ElementsAre("Gemm"));
  }
}

TEST(FoldBatchNorm, LeavesALayerThatSomebodyElseReads) {
  NetBuilder b("net", 1);
  const auto x = b.conv(b.input("x", {1, 3, 4, 4}), {.out = 3});
  b.output(b.add(b.batch_norm(x), x), "y");
  expect_untouched(finished(std::move(b)), "fold_batch_norm");
}

TEST(FoldBatchNorm, LeavesALayerThatIsAnOutput) {
  NetBuilder b("net", 1);
  const auto x = b.conv(b.input("x", {1, 3, 4, 4}), {.out = 3});
  b.output(x, "features");
  b.output(b.batch_norm(x), "y");
  expect_untouched(finished(std::move(b)), "fold_batch_norm");
}

TEST(FoldBatchNorm, LeavesOneAfterAnActivation) {
  NetBuilder b("net", 1);
  const auto x = b.activate(b.conv(b.input("x", {1, 3, 4, 4}), {.out = 3}), kRelu);
  b.output(b.batch_norm(x), "y");
  auto graph = finished(std::move(b));
  ASSERT_TRUE(run_pass(graph, "fuse_activations").value());
  expect_untouched(graph, "fold_batch_norm");
}

TEST(FoldAffine, TakesCaffesScaleIn) {
  NetBuilder b("net", 1);
  auto x = b.conv(b.input("x", {1, 3, 4, 4}), {.out = 5, .bias = true});
  x = b.batch_norm(x);
  x = b.mul(x, b.parameter("scale", {5, 1, 1}, 1));
  x = b.add(b.parameter("shift", {1, 5, 1, 1}, 1), x);
  b.output(b.activate(x, kRelu), "y");
  const auto graph = finished(std::move(b));
  EXPECT_THAT(node_types(after_pass(graph, "fold_affine")),
              ElementsAre("Conv", "BatchNormalization", "Relu"));
  auto folded = graph;
  ASSERT_TRUE(simplify(folded));
  EXPECT_THAT(node_types(folded), ElementsAre("Conv+Relu"));
  expect_equivalent(graph, folded);
}

TEST(FoldAffine, TakesDifferencesAndQuotientsIn) {
  NetBuilder b("net", 1);
  auto x = b.conv(b.input("x", {1, 3, 4, 4}), {.out = 5});
  x = b.sub(b.parameter("from", {5, 1, 1}, 1), x);
  x = b.node(Elementwise{ElementwiseKind::div}, {x, b.parameter("by", {}, 0, 3)});
  x = b.sub(x, b.parameter("less", {1}, 0, 0.5));
  b.output(x, "y");
  EXPECT_THAT(node_types(after_pass(finished(std::move(b)), "fold_affine")), ElementsAre("Conv"));
}

TEST(FoldAffine, LeavesConstantsAlongOtherDimensions) {
  NetBuilder b("net", 1);
  auto x = b.conv(b.input("x", {1, 3, 5, 5}), {.out = 5});
  x = b.mul(x, b.parameter("by column", {5}, 1));
  b.output(b.activate(x, kRelu), "y");
  expect_untouched(finished(std::move(b)), "fold_affine");
}

TEST(FoldAffine, LeavesConstantsThatMakeTheResultLarger) {
  NetBuilder b("net", 1);
  auto x = b.conv(b.input("x", {1, 3, 5, 5}), {.out = 1});
  b.output(b.mul(x, b.parameter("many", {4, 1, 1}, 1)), "y");
  expect_untouched(finished(std::move(b)), "fold_affine");
}

}  // namespace
}  // namespace fleetfit::graph
