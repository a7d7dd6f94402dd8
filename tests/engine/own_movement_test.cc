// Our own kernels that move data, against the interpreter.
#include <gtest/gtest.h>

#include "tests/engine/one_node.h"

namespace fleetfit::engine {
namespace {

using graph::Layout;

constexpr std::array kTypes{DType::f32, DType::u8, DType::i8, DType::i16, DType::i64};

TEST(OwnMovement, ShufflesChannels) {
  for (const auto type : kTypes) {
    expect_as_interpreted({graph::ChannelShuffle{2, Layout::nhwc}, {tensor({1, 7, 5, 58}, type)}});
    expect_as_interpreted(
        {graph::ChannelShuffle{2, Layout::nhwc}, {tensor({2, 14, 14, 116}, type)}});
    expect_as_interpreted({graph::ChannelShuffle{3, Layout::nhwc}, {tensor({1, 3, 5, 60}, type)}});
    expect_as_interpreted({graph::ChannelShuffle{4, Layout::nhwc}, {tensor({1, 3, 5, 8}, type)}});
    expect_as_interpreted({graph::ChannelShuffle{5, Layout::nhwc}, {tensor({1, 3, 5, 10}, type)}});
    expect_as_interpreted({graph::ChannelShuffle{2, Layout::nchw}, {tensor({2, 58, 3, 7}, type)}});
    expect_as_interpreted({graph::ChannelShuffle{3, Layout::nchw}, {tensor({1, 6, 1, 1}, type)}});
  }
}

TEST(OwnMovement, Transposes) {
  const std::vector<std::pair<Shape, graph::Ints>> cases{{{1, 3, 17, 19}, {0, 2, 3, 1}},
                                                         {{1, 17, 19, 3}, {0, 3, 1, 2}},
                                                         {{2, 37, 5, 8}, {0, 2, 3, 1}},
                                                         {{2, 5, 8, 37}, {0, 3, 1, 2}},
                                                         {{7, 130}, {1, 0}},
                                                         {{64, 96}, {}},
                                                         {{2, 3, 4, 5}, {3, 2, 1, 0}},
                                                         {{2, 3, 4, 5}, {2, 0, 3, 1}},
                                                         {{1, 49, 3, 4, 8}, {2, 0, 3, 1, 4}},
                                                         {{3, 2, 2, 5, 2, 3}, {5, 3, 1, 0, 2, 4}},
                                                         {{9}, {0}},
                                                         {{1, 197, 6, 64}, {0, 2, 3, 1}},
                                                         {{2, 3, 4}, {0, 1, 2}},
                                                         {{5, 1, 4}, {-1, 0, 1}}};
  for (const auto& [shape, perm] : cases) {
    for (const auto type : kTypes) {
      expect_as_interpreted({graph::Transpose{perm}, {tensor(shape, type)}});
    }
  }
}

TEST(OwnMovement, ConcatenatesAlongAnyAxis) {
  for (const auto type : kTypes) {
    expect_as_interpreted(
        {graph::Concat{3}, {tensor({1, 7, 7, 58}, type), tensor({1, 7, 7, 58}, type, 2)}});
    expect_as_interpreted(
        {graph::Concat{1},
         {tensor({2, 3, 5}, type), tensor({2, 1, 5}, type, 2), tensor({2, 4, 5}, type, 3)}});
    expect_as_interpreted(
        {graph::Concat{-1}, {tensor({2, 3, 1}, type), constant(tensor({2, 3, 1}, type, 2))}});
    expect_as_interpreted({graph::Concat{0}, {tensor({4}, type), tensor({3}, type, 2)}});
  }
}

TEST(OwnMovement, SplitsAlongAnyAxis) {
  for (const auto type : kTypes) {
    expect_as_interpreted({graph::Split{3}, {tensor({1, 7, 7, 116}, type)}, 2});
    expect_as_interpreted({graph::Split{1}, {tensor({2, 7, 3}, type), ints({2, 1, 4})}, 3});
    expect_as_interpreted({graph::Split{-1}, {tensor({2, 5}, type), ints({1, 4})}, 2});
    expect_as_interpreted({graph::Unstack{1}, {tensor({2, 3, 5}, type)}, 3});
    expect_as_interpreted({graph::Unstack{-1}, {tensor({2, 3, 4}, type)}, 4});
  }
}

TEST(OwnMovement, Stacks) {
  for (const auto axis : {0, 1, 2, -1}) {
    expect_as_interpreted(
        {graph::Stack{axis},
         {tensor({3, 4}), tensor({3, 4}, DType::f32, 2), tensor({3, 4}, DType::f32, 3)}});
  }
}

TEST(OwnMovement, SlicesWithAnyStep) {
  for (const auto type : kTypes) {
    const Given x = tensor({2, 9, 8, 7}, type);
    expect_as_interpreted({graph::Slice{}, {x, ints({1, 2}), ints({7, 100}), ints({1, 3})}});
    expect_as_interpreted(
        {graph::Slice{}, {x, ints({-1, 0}), ints({-100, 8}), ints({1, 2}), ints({-2, 3})}});
    expect_as_interpreted(
        {graph::Slice{}, {x, ints({-1}), ints({INT64_MIN}), ints({3}), ints({-1})}});
    expect_as_interpreted(
        {graph::Slice{}, {x, ints({1}), ints({2}), ints({-1}), ints({INT64_MAX})}});
    expect_as_interpreted({graph::Slice{}, {x, ints({0, 3}), ints({1, 5})}});
    expect_as_interpreted({graph::Slice{{1, -1}}, {x, ints({4, 2}), ints({5, 3}), ints({1, 3})}});
  }
}

TEST(OwnMovement, CopiesUnderAnotherShape) {
  for (const auto type : kTypes) {
    const Given x = constant(tensor({2, 1, 6}, type));
    expect_as_interpreted({graph::Reshape{}, {x, ints({3, 4})}});
    expect_as_interpreted({graph::Flatten{1}, {x}});
    expect_as_interpreted({graph::Squeeze{}, {x, ints({1})}});
    expect_as_interpreted({graph::Unsqueeze{}, {x, ints({0})}});
    expect_as_interpreted({graph::Identity{}, {x}});
  }
}

TEST(OwnMovement, RepeatsElements) {
  for (const auto type : kTypes) {
    expect_as_interpreted({graph::Expand{}, {tensor({3, 1}, type), ints({2, 3, 4})}});
    expect_as_interpreted({graph::Expand{}, {tensor({1, 4}, type), ints({3, 4})}});
    expect_as_interpreted({graph::Expand{}, {tensor({}, type), ints({2, 2})}});
    expect_as_interpreted({graph::Tile{}, {tensor({2, 3}, type), ints({2, 2})}});
    expect_as_interpreted({graph::Tile{}, {tensor({1, 3, 2}, type), ints({4, 1, 3})}});
  }
}

TEST(OwnMovement, Pads) {
  for (const auto type : kTypes) {
    const Given x = tensor({2, 5, 4, 3}, type);
    for (const auto mode :
         {graph::PadMode::constant, graph::PadMode::reflect, graph::PadMode::edge}) {
      expect_as_interpreted({graph::Pad{mode}, {x, ints({0, 1, 2, 0, 0, 3, 1, 0})}});
      expect_as_interpreted({graph::Pad{mode}, {x, ints({0, 0, 1, 2, 1, 0, 0, 1})}});
      expect_as_interpreted({graph::Pad{mode}, {x, ints({0, -1, 0, 0, 0, 0, -2, 0})}});
    }
    expect_as_interpreted(
        {graph::Pad{}, {x, ints({0, 1, 1, 0, 0, 1, 1, 0}), constant(tensor({1}, type, 9))}});
  }
}

TEST(OwnMovement, PadsQuantizedTensorsWithWhatStandsForZero) {
  const auto x = quantized({1, 3, 3, 2}, DType::u8, 0.5F, 131);
  expect_as_interpreted({.op = graph::Pad{},
                         .inputs = {x, ints({0, 1, 1, 0, 0, 1, 1, 0})},
                         .quantizations = {scale_of(0.5F, 131)}},
                        {.quanta = 0});
}

TEST(OwnMovement, GathersByIndicesThatAreKnownLate) {
  const Given indices{{DType::i64, {2, 2}, graph::TensorData::copy(graph::Ints{0, 2, -1, 1}), {}}};
  for (const auto type : kTypes) {
    for (const auto axis : {0, 1, -1}) {
      expect_as_interpreted({graph::Gather{axis}, {tensor({3, 4, 5}, type), indices}});
    }
  }
}

TEST(OwnMovement, RefusesAnIndexThatIsNotThere) {
  const OneNode right{graph::Gather{0}, {tensor({3, 2}), ints({1})}};
  const Task task = right.task(right.interpreted().value(), 1);
  const auto kernel = make_own_kernel(task);
  AlignedMemory x(24);
  AlignedMemory out(8);
  const std::int64_t wrong = 7;
  Task late = task;
  late.inputs[1].constant.reset();
  const auto runtime = make_own_kernel(late);
  runtime->bind(
      {.inputs = {x.data(), reinterpret_cast<const std::byte*>(&wrong)}, .outputs = {out.data()}});
  const auto status = runtime->run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "there is no index 7 among 3");
}

TEST(OwnMovement, MovesBetweenDepthAndSpace) {
  for (const auto type : kTypes) {
    for (const bool crd : {false, true}) {
      expect_as_interpreted(
          {graph::DepthToSpace{2, crd, Layout::nhwc}, {tensor({2, 3, 5, 12}, type)}});
      expect_as_interpreted(
          {graph::DepthToSpace{2, crd, Layout::nchw}, {tensor({2, 12, 3, 5}, type)}});
    }
    expect_as_interpreted({graph::SpaceToDepth{2, Layout::nhwc}, {tensor({2, 4, 6, 3}, type)}});
    expect_as_interpreted({graph::SpaceToDepth{2, Layout::nchw}, {tensor({2, 3, 4, 6}, type)}});
  }
}

TEST(OwnMovement, MovesBetweenBatchAndSpace) {
  const Given margins{{DType::i64, {2, 2}, graph::TensorData::copy(graph::Ints{1, 0, 0, 2}), {}},
                      true};
  for (const auto type : kTypes) {
    expect_as_interpreted(
        {graph::SpaceToBatch{}, {tensor({2, 3, 4, 3}, type), ints({2, 3}), margins}});
    expect_as_interpreted(
        {graph::BatchToSpace{}, {tensor({12, 2, 3, 3}, type), ints({2, 3}), margins}});
  }
}

TEST(OwnMovement, LeavesWhatItCannotDoToOthers) {
  // A slice whose start is known only when it runs.
  Given start = ints({1});
  start.constant = false;
  const OneNode late{graph::Slice{}, {tensor({4}), start, ints({3})}};
  EXPECT_EQ(make_own_kernel(late.task(late.interpreted().value(), 1)), nullptr);
}

}  // namespace
}  // namespace fleetfit::engine
