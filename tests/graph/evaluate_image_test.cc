// Operators on images: convolutions, pooling, resizing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/evaluate_helpers.h"

namespace fleetfit::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

Window window(const Ints& kernel, std::int64_t stride = 1, std::int64_t pad = 0) {
  const auto rank = kernel.size();
  return {.kernel = kernel,
          .strides = Ints(rank, stride),
          .dilations = Ints(rank, 1),
          .pads_begin = Ints(rank, pad),
          .pads_end = Ints(rank, pad)};
}

/// An NCHW tensor as NHWC, or weights in the order that convolutions want with NHWC.
Value channels_last(const Value& x) { return result_of(Transpose{{0, 2, 3, 1}}, {x}); }
Value channels_first(const Value& x) { return result_of(Transpose{{0, 3, 1, 2}}, {x}); }

double dot(const Value& a, const Value& b) {
  double sum = 0;
  const auto x = numbers_of<float>(a);
  const auto y = numbers_of<float>(b);
  for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i]) * y[i];
  return sum;
}

TEST(EvaluateConv, SlidesAlongOneDimension) {
  // x = 1 2 3 4 with a zero on both sides, kernel 1 10 100, bias 0.5
  const auto y = result_of(
      Conv{window({3}, 1, 1)},
      {floats({1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 3}, {1, 10, 100}), floats({1}, {0.5F})});
  EXPECT_THAT(numbers_of<float>(y), ElementsAre(210.5F, 321.5F, 432.5F, 43.5F));
}

TEST(EvaluateConv, StridesAndDilates) {
  Conv op{window({2}, 2)};
  op.window.dilations = {3};
  const auto y = result_of(op, {counting({1, 1, 8}), floats({1, 1, 2}, {1, 10})});
  EXPECT_THAT(numbers_of<float>(y), ElementsAre(30, 52, 74));
}

TEST(EvaluateConv, GroupsSeeOnlyTheirChannels) {
  const Conv op{.window = window({1, 1}), .groups = 2};
  const auto y =
      result_of(op, {floats({1, 4, 1, 1}, {1, 2, 3, 4}), floats({2, 2, 1, 1}, {1, 10, 1, 10})});
  EXPECT_THAT(numbers_of<float>(y), ElementsAre(21, 43));
}

TEST(EvaluateConv, SumsOverThreeSpatialDimensions) {
  const auto y =
      result_of(Conv{window({2, 2, 2})},
                {counting({1, 1, 2, 2, 2}), floats({1, 1, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1})});
  EXPECT_THAT(numbers_of<float>(y), ElementsAre(28));
}

TEST(EvaluateConv, MeansTheSameInBothLayouts) {
  for (const std::int64_t groups : {1, 2, 4}) {
    Conv op{.window = window({3, 2}, 2, 1), .groups = groups};
    const auto x = random_floats({2, 4, 7, 6}, 1);
    const auto w = random_floats({8, 4 / groups, 3, 2}, 2);
    const auto expected = result_of(op, {x, w});
    op.layout = Layout::nhwc;
    const auto y = channels_first(result_of(op, {channels_last(x), channels_last(w)}));
    EXPECT_EQ(y.shape, expected.shape);
    EXPECT_EQ(y.data, expected.data);
  }
}

// A transposed convolution is the adjoint of the convolution with the same weights:
// <conv(x), y> = <x, transposed(y)> for all x and y.
TEST(EvaluateConvTranspose, IsTheAdjointOfConv) {
  for (const std::int64_t groups : {1, 3}) {
    auto slide = window({3, 4}, 2, 1);
    slide.dilations = {1, 2};
    const auto x = random_floats({1, 6, 9, 10}, 1);
    const auto w = random_floats({9, 6 / groups, 3, 4}, 2);
    const auto forward = result_of(Conv{.window = slide, .groups = groups}, {x, w});
    const auto y = random_floats(forward.shape, 3);
    // 9 = 2 * (5 - 1) + 3 - 2 and 10 = 2 * (3 - 1) + 7 - 2 + 1
    ConvTranspose op{.window = slide, .groups = groups, .output_padding = {0, 1}};
    const auto backward = result_of(op, {y, w});
    ASSERT_EQ(backward.shape, x.shape);
    EXPECT_NEAR(dot(forward, y), dot(x, backward), 1e-4);
  }
}

TEST(EvaluateConvTranspose, TakesOutputFirstWeightsWithChannelsLast) {
  // Weights output x kernel x input/groups: 4 outputs and 6 inputs in two groups.
  const auto x = random_floats({1, 6, 3, 3}, 1);
  const auto by_output = random_floats({4, 3, 2, 2}, 2);  // output x input/groups x kernel
  // The same weights as ONNX has them, group by group.
  std::vector<Value> groups;
  for (std::int64_t g = 0; g < 2; ++g) {
    const auto part = result_of(Slice{}, {by_output, int_list({2 * g}), int_list({2 * g + 2})});
    groups.push_back(result_of(Transpose{{1, 0, 2, 3}}, {part}));
  }
  const auto by_input = result_of(Concat{0}, groups);
  ConvTranspose op{.window = window({2, 2}, 2), .groups = 2, .output_padding = {0, 0}};
  const auto expected = result_of(op, {x, by_input});
  op.layout = Layout::nhwc;
  const auto y = channels_first(result_of(op, {channels_last(x), channels_last(by_output)}));
  EXPECT_EQ(y.data, expected.data);
}

TEST(EvaluatePool, AveragesWhatTheWindowCovers) {
  Pool op{.kind = PoolKind::average, .window = window({2}, 2, 1)};
  const auto x = floats({1, 1, 3}, {2, 4, 6});
  EXPECT_THAT(numbers_of<float>(result_of(op, {x})), ElementsAre(2, 5));
  op.count_include_pad = true;
  EXPECT_THAT(numbers_of<float>(result_of(op, {x})), ElementsAre(1, 5));
}

TEST(EvaluatePool, CeilModeCountsNoCellBehindThePadding) {
  Pool op{.kind = PoolKind::average, .window = window({2}, 2), .count_include_pad = true};
  op.window.ceil_mode = true;
  EXPECT_THAT(numbers_of<float>(result_of(op, {floats({1, 1, 3}, {2, 4, 6})})), ElementsAre(3, 6));
}

TEST(EvaluatePool, MaximumIgnoresPaddingAndTellsThePlace) {
  const Pool op{.window = window({2}, 1, 1)};
  const auto results =
      run_operator(op, {floats({1, 2, 2}, {-3, -1, -5, -7})}, {.outputs = 2}).value();
  EXPECT_THAT(numbers_of<float>(results[0]), ElementsAre(-3, -1, -1, -5, -5, -7));
  EXPECT_THAT(numbers_of<std::int64_t>(results[1]), ElementsAre(0, 1, 1, 2, 2, 3));
}

TEST(EvaluatePool, MeansTheSameInBothLayouts) {
  const auto x = random_floats({2, 3, 6, 5}, 1);
  for (const auto kind : {PoolKind::max, PoolKind::average}) {
    Pool op{.kind = kind, .window = window({3, 2}, 2, 1)};
    GlobalPool global{.kind = kind};
    const auto expected = result_of(op, {x});
    const auto expected_global = result_of(global, {x});
    op.layout = global.layout = Layout::nhwc;
    EXPECT_EQ(channels_first(result_of(op, {channels_last(x)})).data, expected.data);
    EXPECT_EQ(channels_first(result_of(global, {channels_last(x)})).data, expected_global.data);
  }
}

TEST(EvaluateBatchNorm, NormalizesEachChannelInBothLayouts) {
  BatchNorm op{.epsilon = 0};
  const auto x = floats({1, 2, 1, 2}, {1, 3, 10, 20});
  const std::vector rest{floats({2}, {1, 2}), floats({2}, {0, 5}), floats({2}, {2, 10}),
                         floats({2}, {1, 4})};
  const auto with = [&](const Value& first) {
    std::vector all{first};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  };
  EXPECT_THAT(numbers_of<float>(result_of(op, with(x))), ElementsAre(-1, 1, 5, 15));
  op.layout = Layout::nhwc;
  EXPECT_THAT(numbers_of<float>(result_of(op, with(channels_last(x)))), ElementsAre(-1, 5, 1, 15));
}

TEST(EvaluateResize, InterpolatesBetweenHalfPixels) {
  const auto x = floats({1, 1, 2}, {1, 2});
  const auto none = floats({0}, {});
  const auto scales = floats({3}, {1, 1, 2});
  const auto y = result_of(Resize{.mode = ResizeMode::linear}, {x, none, scales});
  EXPECT_THAT(numbers_of<float>(y), ElementsAre(1, 1.25F, 1.75F, 2));
  const Resize corners{.mode = ResizeMode::linear, .coordinates = CoordinateMode::align_corners};
  EXPECT_THAT(numbers_of<float>(result_of(corners, {x, none, scales})),
              Pointwise(FloatNear(1e-6F), {1.0F, 4.0F / 3, 5.0F / 3, 2.0F}));
}

TEST(EvaluateResize, RepeatsTheNearestElementOfAnyType) {
  const auto x = value_of<std::int8_t>(DType::i8, {1, 1, 2}, {5, 7});
  const Resize op{.coordinates = CoordinateMode::asymmetric, .nearest = NearestMode::floor};
  const auto y = result_of(op, {x, floats({0}, {}), floats({3}, {1, 1, 2})});
  EXPECT_THAT(numbers_of<std::int8_t>(y), ElementsAre(5, 5, 7, 7));
}

}  // namespace
}  // namespace fleetfit::graph
