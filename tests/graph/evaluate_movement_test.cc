// Operators that move or select elements, and quantized tensors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/graph/evaluate_helpers.h"

namespace fleetfit::graph {
namespace {

using ::testing::ElementsAre;

TEST(EvaluateMovement, TransposesElementsOfAnySize) {
  const auto small = value_of<std::uint8_t>(DType::u8, {2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(numbers_of<std::uint8_t>(result_of(Transpose{{1, 0}}, {small})),
              ElementsAre(0, 3, 1, 4, 2, 5));
  const auto large = ints({1, 2, 2}, {0, 1, 2, 3});
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Transpose{{2, 1, 0}}, {large})),
              ElementsAre(0, 2, 1, 3));
}

TEST(EvaluateMovement, SlicesClampTheirBounds) {
  const auto x = int_list({0, 1, 2, 3, 4});
  const auto slice = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return numbers_of<std::int64_t>(result_of(
        Slice{}, {x, int_list({start}), int_list({end}), int_list({0}), int_list({step})}));
  };
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(slice(1, most, 2), ElementsAre(1, 3));
  EXPECT_THAT(slice(-2, most, most), ElementsAre(3));
  EXPECT_THAT(slice(most, least, -2), ElementsAre(4, 2, 0));
  EXPECT_THAT(slice(2, -100, least), ElementsAre(2));
  EXPECT_THAT(slice(4, 2, 1), ElementsAre());
}

TEST(EvaluateMovement, SliceDropsSqueezedDimensions) {
  const auto y = result_of(Slice{.squeezed = {0}},
                           {counting({2, 3}), int_list({1}), int_list({2}), int_list({0})});
  EXPECT_EQ(y.shape, Shape{3});
  EXPECT_THAT(numbers_of<float>(y), ElementsAre(3, 4, 5));
}

TEST(EvaluateMovement, PadsByConstantEdgeOrReflection) {
  const auto x = int_list({1, 2, 3});
  const auto pads = int_list({2, 1});
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Pad{}, {x, pads, ints({}, {9})})),
              ElementsAre(9, 9, 1, 2, 3, 9));
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Pad{PadMode::edge}, {x, pads})),
              ElementsAre(1, 1, 1, 2, 3, 3));
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Pad{PadMode::reflect}, {x, pads})),
              ElementsAre(3, 2, 1, 2, 3, 2));
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Pad{}, {x, int_list({-1, 1})})),
              ElementsAre(2, 3, 0));
}

TEST(EvaluateMovement, GatherCountsFromTheEndAndRefusesWhatIsNotThere) {
  const auto x = counting({2, 2});
  EXPECT_THAT(numbers_of<float>(result_of(Gather{.axis = 1}, {x, int_list({-1})})),
              ElementsAre(1, 3));
  for (const std::int64_t index : {2, -3}) {
    const auto result = run_operator(Gather{}, {x, int_list({index})});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_input);
  }
}

TEST(EvaluateMovement, StacksAndUnstacks) {
  const auto stacked = result_of(Stack{.axis = 1}, {int_list({1, 2}), int_list({3, 4})});
  EXPECT_EQ(stacked.shape, (Shape{2, 2}));
  EXPECT_THAT(numbers_of<std::int64_t>(stacked), ElementsAre(1, 3, 2, 4));
  const auto parts = run_operator(Unstack{.axis = 1}, {stacked}, {.outputs = 2}).value();
  EXPECT_THAT(numbers_of<std::int64_t>(parts[1]), ElementsAre(3, 4));
}

// Examples of TensorFlow's documentation.
TEST(EvaluateMovement, MovesDepthToSpaceWithChannelsLast) {
  const auto x = counting({1, 1, 1, 12});
  const auto y = result_of(DepthToSpace{.block = 2, .layout = Layout::nhwc}, {x});
  EXPECT_EQ(y.shape, (Shape{1, 2, 2, 3}));
  EXPECT_EQ(y.data, x.data);
  const auto back = result_of(SpaceToDepth{.block = 2, .layout = Layout::nhwc}, {y});
  EXPECT_EQ(back.shape, x.shape);
  EXPECT_EQ(back.data, x.data);
}

TEST(EvaluateMovement, MovesSpaceToBatchAndBack) {
  const auto x = counting({1, 4, 4, 1});
  const auto block = int_list({2, 2});
  const auto none = ints({2, 2}, {0, 0, 0, 0});
  const auto y = result_of(SpaceToBatch{}, {x, block, none});
  EXPECT_EQ(y.shape, (Shape{4, 2, 2, 1}));
  EXPECT_THAT(numbers_of<float>(y),
              ElementsAre(0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15));
  EXPECT_EQ(result_of(BatchToSpace{}, {y, block, none}).data, x.data);
}

TEST(EvaluateMovement, BatchToSpaceCropsWhatSpaceToBatchPadded) {
  const auto x = counting({2, 3, 3, 2});
  const auto block = int_list({2, 2});
  const auto margins = ints({2, 2}, {1, 0, 0, 1});
  const auto y = result_of(SpaceToBatch{}, {x, block, margins});
  EXPECT_EQ(y.shape, (Shape{8, 2, 2, 2}));
  const auto back = result_of(BatchToSpace{}, {y, block, margins});
  EXPECT_EQ(back.shape, x.shape);
  EXPECT_EQ(back.data, x.data);
}

TEST(EvaluateMovement, ShufflesChannelsBetweenGroups) {
  const auto x = counting({1, 6, 1, 1});
  EXPECT_THAT(numbers_of<float>(result_of(ChannelShuffle{.groups = 2}, {x})),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(numbers_of<float>(result_of(ChannelShuffle{.groups = 2, .layout = Layout::nhwc},
                                          {counting({1, 1, 1, 6})})),
              ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(EvaluateSelection, TopKGivesTheFirstOfEqualsFirst) {
  const auto results =
      run_operator(TopK{.axis = 0}, {int_list({1, 3, 3, 2}), int_list({3})}, {.outputs = 2})
          .value();
  EXPECT_THAT(numbers_of<std::int64_t>(results[0]), ElementsAre(3, 3, 2));
  EXPECT_THAT(numbers_of<std::int64_t>(results[1]), ElementsAre(1, 2, 3));
}

TEST(EvaluateSelection, ReducesWholeNumbersExactly) {
  const auto big = std::int64_t{1} << 60;
  const auto x = ints({2, 2}, {big, 1, big, 2});
  const Reduce sum{.kind = ReduceKind::sum, .axes = {0}, .keep_dims = false};
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(sum, {x})), ElementsAre(2 * big, 3));
}

Value bytes(Shape shape, const std::vector<std::int8_t>& numbers) {
  return value_of(DType::i8, std::move(shape), numbers);
}

TEST(EvaluateQuantized, ComputesOnTheRealNumbers) {
  const auto a = with_quantization(bytes({3}, {10, 20, 127}), 0.5F, 10);  // 0, 5, 58.5
  const auto b = with_quantization(bytes({3}, {4, 3, 2}), 0.25F, 0);      // 1, 0.75, 0.5
  const Quantization target{{0.5F}, {-1}, std::nullopt};
  const auto sum =
      result_of(Elementwise{ElementwiseKind::add}, {a, b}, {.quantizations = {target}});
  EXPECT_EQ(sum.dtype, DType::i8);
  EXPECT_EQ(sum.quantization, target);
  // 1 / 0.5 = 2, 5.75 / 0.5 = 11.5 to the even 12, 59 / 0.5 = 118, each less 1
  EXPECT_THAT(numbers_of<std::int8_t>(sum), ElementsAre(1, 11, 117));
}

TEST(EvaluateQuantized, AppliesActivationsBeforeRoundingAndSaturates) {
  const auto x = with_quantization(bytes({3}, {-100, 50, 127}), 1, 0);
  const Quantization target{{0.5F}, {0}, std::nullopt};
  const auto y = result_of(
      Identity{}, {x}, {.activation = {ActivationKind::clip, 0, 60}, .quantizations = {target}});
  EXPECT_THAT(numbers_of<std::int8_t>(y), ElementsAre(0, 100, 120));
  const auto saturated = result_of(Requantize{DType::i8}, {x}, {.quantizations = {target}});
  EXPECT_THAT(numbers_of<std::int8_t>(saturated), ElementsAre(-128, 100, 127));
}

TEST(EvaluateQuantized, WeightsMayHaveAScaleForEachChannel) {
  const Conv op{.window = {{1}, {1}, {1}, {0}, {0}}};
  const auto x = with_quantization(bytes({1, 1, 2}, {1, 2}), 1, 0);
  auto w = bytes({2, 1, 1}, {10, 10});
  w.quantization = Quantization{{0.5F, 0.1F}, {0, 0}, 0};
  const Quantization target{{1}, {0}, std::nullopt};
  EXPECT_THAT(numbers_of<std::int8_t>(result_of(op, {x, w}, {.quantizations = {target}})),
              ElementsAre(5, 10, 1, 2));
}

TEST(EvaluateQuantized, MovesStoredNumbersWhereTheyMeanTheSame) {
  const auto x = with_quantization(bytes({2, 2}, {1, 2, 3, 4}), 0.3F, 7);
  const auto y = result_of(Transpose{{1, 0}}, {x});
  EXPECT_EQ(y.quantization, x.quantization);
  EXPECT_THAT(numbers_of<std::int8_t>(y), ElementsAre(1, 3, 2, 4));
}

TEST(EvaluateQuantized, JoinsTensorsOfDifferentScales) {
  const auto a = with_quantization(bytes({1}, {10}), 1, 0);
  const auto b = with_quantization(bytes({1}, {10}), 0.5F, 0);
  EXPECT_THAT(
      numbers_of<std::int8_t>(result_of(Concat{0}, {a, b}, {.quantizations = {a.quantization}})),
      ElementsAre(10, 5));
  EXPECT_EQ(run_operator(Concat{0}, {a, b}).error().code, ErrorCode::unsupported);
}

TEST(EvaluateQuantized, PadsWithTheNumberThatStandsForZero) {
  const auto x = with_quantization(bytes({1}, {5}), 1, 3);
  EXPECT_THAT(numbers_of<std::int8_t>(
                  result_of(Pad{}, {x, int_list({1, 1})}, {.quantizations = {x.quantization}})),
              ElementsAre(3, 5, 3));
}

TEST(EvaluateQuantized, TransposesScalesAlongAnAxis) {
  auto x = bytes({2, 2}, {1, 2, 3, 4});
  x.quantization = Quantization{{0.1F, 0.3F}, {0, 0}, 0};
  const Quantization moved{{0.1F, 0.3F}, {0, 0}, 1};
  const auto y = result_of(Transpose{{1, 0}}, {x}, {.quantizations = {moved}});
  EXPECT_THAT(numbers_of<std::int8_t>(y), ElementsAre(1, 3, 2, 4));
}

TEST(EvaluateQuantized, RequantizesToAndFromFloats) {
  const auto stored = with_quantization(bytes({2}, {1, 3}), 0.5F, 1);
  const auto reals = result_of(Requantize{DType::f32}, {stored});
  EXPECT_THAT(numbers_of<float>(reals), ElementsAre(0, 1));
  const Quantization target{{0.25F}, {0}, std::nullopt};
  const auto back = result_of(Requantize{DType::i8}, {reals}, {.quantizations = {target}});
  EXPECT_THAT(numbers_of<std::int8_t>(back), ElementsAre(0, 4));
}

}  // namespace
}  // namespace fleetfit::graph
