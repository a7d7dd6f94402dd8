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

TEST(OwnElementwise, CombinesFloatsWithBroadcasting) {
  using Kind = graph::ElementwiseKind;
  const std::vector<std::pair<Shape, Shape>> shapes{{{1, 7, 5, 24}, {1, 7, 5, 24}},
                                                    {{2, 7, 5, 24}, {2, 1, 1, 24}},
                                                    {{2, 1, 1, 24}, {2, 7, 5, 24}},
                                                    {{3, 33}, {33}},
                                                    {{40, 60}, {1}},
                                                    {{}, {3, 5}},
                                                    {{2, 3, 4, 5}, {3, 1, 5}},
                                                    {{4, 1, 3}, {1, 5, 1}},
                                                    {{2, 5, 9, 3}, {2, 1, 9, 1}},
                                                    {{1}, {1}},
                                                    {{4, 5000}, {4, 1}},
                                                    {{1, 64, 40, 40}, {1, 64, 1, 1}}};
  for (const auto kind : {Kind::add, Kind::sub, Kind::mul, Kind::div, Kind::min, Kind::max,
                          Kind::mod, Kind::sum, Kind::mean, Kind::squared_difference, Kind::equal,
                          Kind::greater, Kind::less, Kind::greater_or_equal, Kind::less_or_equal}) {
    for (const auto& [a, b] : shapes) {
      expect_as_interpreted({graph::Elementwise{kind}, {tensor(a), positive(b, 2)}});
    }
  }
  expect_as_interpreted({graph::Elementwise{Kind::pow}, {positive({3, 5}), tensor({5})}});
  for (const float exponent : {2.0F, 0.5F, -1.5F, 3.0F}) {
    const Given power{{DType::f32, {}, graph::TensorData::copy(std::vector{exponent}), {}}, true};
    expect_as_interpreted({graph::Elementwise{Kind::pow}, {positive({3, 50}), power}});
  }
}

TEST(OwnElementwise, CombinesManyAndActivates) {
  using Kind = graph::ElementwiseKind;
  for (const auto kind : {Kind::sum, Kind::mean, Kind::min, Kind::max}) {
    expect_as_interpreted(
        {graph::Elementwise{kind},
         {tensor({3, 5}), constant(tensor({5}, DType::f32, 2)), tensor({3, 1}, DType::f32, 3)},
         1,
         graph::kRelu6});
  }
  expect_as_interpreted({graph::Elementwise{Kind::add},
                         {tensor({3, 700}), tensor({3, 700}, DType::f32, 2)},
                         1,
                         graph::kHardSwish});
  expect_as_interpreted(
      {graph::Concat{1}, {tensor({3, 7}), tensor({3, 70}, DType::f32, 2)}, 1, graph::kRelu});
}

TEST(OwnElementwise, CombinesIntegersAndTruths) {
  using Kind = graph::ElementwiseKind;
  for (const auto type : {DType::i32, DType::i64}) {
    const Given divisor{{type,
                         {3},
                         type == DType::i32 ? stored_as<std::int32_t>({-1, 2, 3})
                                            : stored_as<std::int64_t>({-1, 2, 3}),
                         {}}};
    for (const auto kind :
         {Kind::add, Kind::sub, Kind::mul, Kind::div, Kind::mod, Kind::min, Kind::max, Kind::equal,
          Kind::less, Kind::greater, Kind::greater_or_equal, Kind::less_or_equal}) {
      expect_as_interpreted({graph::Elementwise{kind}, {tensor({4, 3}, type), divisor}});
    }
  }
  for (const auto kind : {Kind::logical_and, Kind::logical_or, Kind::logical_xor, Kind::equal}) {
    expect_as_interpreted({graph::Elementwise{kind},
                           {tensor({4, 3}, DType::boolean), tensor({3}, DType::boolean, 2)}});
  }
}

TEST(OwnElementwise, RefusesToDivideByZero) {
  const OneNode right{
      graph::Elementwise{graph::ElementwiseKind::div},
      {tensor({3}, DType::i32), constant({{DType::i32, {}, stored_as<std::int32_t>({2}), {}}})}};
  Task task = right.task(right.interpreted().value(), 1);
  task.inputs[1].constant = stored_as<std::int32_t>({0});
  const auto kernel = make_own_kernel(task);
  AlignedMemory x(12);
  AlignedMemory out(12);
  kernel->bind({.inputs = {x.data(), nullptr}, .outputs = {out.data()}});
  EXPECT_EQ(kernel->run().error().message, "division by zero");
}

TEST(OwnElementwise, ChoosesBetweenTwo) {
  for (const auto type : {DType::f32, DType::i64, DType::u8}) {
    expect_as_interpreted(
        {graph::Where{},
         {tensor({3, 1}, DType::boolean), tensor({4}, type), tensor({3, 4}, type, 5)}});
  }
}

TEST(OwnElementwise, Casts) {
  for (const auto from :
       {DType::f32, DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean}) {
    for (const auto to :
         {DType::f32, DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean}) {
      expect_as_interpreted({graph::Cast{to}, {tensor({3, 50}, from)}});
    }
  }
}

TEST(OwnElementwise, AppliesPRelu) {
  expect_as_interpreted(
      {graph::PRelu{}, {tensor({1, 5, 6, 16}), constant(tensor({16}, DType::f32, 2))}});
  expect_as_interpreted(
      {graph::PRelu{}, {tensor({1, 16, 6, 5}), constant(tensor({16, 1, 1}, DType::f32, 2))}});
}

/// Every activation with the parameters that it needs.
std::vector<graph::Activation> activations() {
  using Kind = graph::ActivationKind;
  return {graph::kRelu,      graph::kRelu6,    {Kind::clip, -1, 2}, {Kind::leaky_relu, 0.1F},
          {Kind::elu, 0.7F}, graph::kSigmoid,  graph::kHardSigmoid, graph::kTanh,
          graph::kHardSwish, graph::kSilu,     graph::kGelu,        {Kind::gelu_tanh},
          {Kind::softplus},  {Kind::softsign}, graph::kSelu,        {Kind::mish}};
}

TEST(OwnActivations, AreAsExactAsFloatsAllow) {
  // Near zero, around the bends, far out, and where e^x leaves the range of floats.
  std::vector<double> numbers;
  for (double x = 1e-6; x < 120; x *= 1.01) numbers.insert(numbers.end(), {x, -x});
  numbers.insert(numbers.end(), {0, 88.72, 88.8, -87.3, -103, -104, 1e30, -1e30});
  const Given x{{DType::f32, {std::ssize(numbers)}, stored_as<float>(numbers), {}}};
  for (const auto& activation : activations()) {
    expect_as_interpreted({graph::Activate{activation}, {x}}, {.relative = 5e-7});
  }
}

TEST(OwnActivations, KeepWhatIsNoNumber) {
  const Given x{{DType::f32, {1}, stored_as<float>({std::nan("")}), {}}};
  for (const auto& activation : activations()) {
    expect_as_interpreted({graph::Activate{activation}, {x}});
  }
}

TEST(OwnActivations, ExponentialIsWithinTwoUnitsInTheLastPlace) {
  std::vector<double> numbers;
  for (double x = -87; x < 88; x += 0.00731) numbers.push_back(x);
  const Given x{{DType::f32, {std::ssize(numbers)}, stored_as<float>(numbers), {}}};
  const OneNode one{graph::Unary{graph::UnaryKind::exp}, {x}};
  const Task task = one.task(one.interpreted().value(), 1);
  const auto kernel = make_own_kernel(task);
  const auto result = run_kernel(*kernel, task, one.inputs);
  const auto in = x.value.data.as<float>();
  const auto out = result[0].data.as<float>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double exact = std::exp(static_cast<double>(in[i]));
    EXPECT_LE(std::abs(out[i] - exact), 2 * exact * 0x1p-23) << in[i];
  }
}

TEST(OwnElementwise, AppliesFunctionsOfOneTensor) {
  using Kind = graph::UnaryKind;
  for (const auto kind :
       {Kind::abs, Kind::neg, Kind::exp, Kind::floor, Kind::ceil, Kind::round, Kind::erf, Kind::sin,
        Kind::cos, Kind::sign, Kind::square, Kind::reciprocal}) {
    expect_as_interpreted({graph::Unary{kind}, {tensor({3, 37})}});
  }
  for (const auto kind : {Kind::log, Kind::sqrt, Kind::rsqrt}) {
    expect_as_interpreted({graph::Unary{kind}, {positive({3, 37})}, 1, graph::kRelu});
  }
  expect_as_interpreted({graph::Unary{Kind::logical_not}, {tensor({7}, DType::boolean)}});
}

TEST(OwnNormalization, Softmax) {
  for (const bool log : {false, true}) {
    for (const auto axis : {0, 1, 2, -1}) {
      expect_as_interpreted({graph::Softmax{axis, false, log}, {tensor({3, 70, 37})}});
      expect_as_interpreted({graph::Softmax{axis, true, log}, {tensor({3, 5, 7})}});
    }
    expect_as_interpreted({graph::Softmax{-1, false, log}, {tensor({2, 6, 197, 197})}});
    expect_as_interpreted({graph::Softmax{1, false, log}, {tensor({1, 5, 70})}});
  }
}

TEST(OwnNormalization, LayerNorm) {
  for (const auto axis : {-1, 1}) {
    const Shape normalized = axis == 1 ? Shape{5, 96} : Shape{96};
    const Given x = tensor({7, 5, 96});
    const Given scale = constant(tensor(normalized, DType::f32, 2));
    const Given shift = constant(tensor(normalized, DType::f32, 3));
    expect_as_interpreted({graph::LayerNorm{axis, 1e-6F}, {x, scale, shift}});
    expect_as_interpreted({graph::LayerNorm{axis, 1e-6F}, {x, scale}, 3});
  }
}

TEST(OwnNormalization, OthersWithWeights) {
  const Given scale = constant(positive({13}, 2));
  const Given shift = constant(tensor({13}, DType::f32, 3));
  const Given mean = tensor({13}, DType::f32, 4);
  const Given variance = positive({13}, 5);
  expect_as_interpreted({graph::InstanceNorm{}, {tensor({2, 13, 5, 7}), scale, shift}});
  expect_as_interpreted({graph::BatchNorm{1e-5F, Layout::nchw},
                         {tensor({2, 13, 5, 7}), scale, shift, mean, variance},
                         1,
                         graph::kRelu});
  expect_as_interpreted({graph::BatchNorm{1e-5F, Layout::nhwc},
                         {tensor({2, 5, 7, 13}), scale, shift, mean, variance}});
}

TEST(OwnNormalization, OthersWithoutWeights) {
  for (const auto axis : {0, 1, -1}) {
    for (const auto p : {1, 2}) {
      expect_as_interpreted({graph::LpNormalization{axis, p}, {tensor({3, 5, 7})}});
    }
  }
  for (const auto size : {1, 2, 5, 50}) {
    for (const float beta : {0.75F, 0.5F}) {
      expect_as_interpreted(
          {graph::Lrn{size, 0.1F, beta, 2, Layout::nchw}, {tensor({2, 13, 5, 7})}});
      expect_as_interpreted(
          {graph::Lrn{size, 0.1F, beta, 2, Layout::nhwc}, {tensor({2, 5, 7, 13})}});
      expect_as_interpreted(
          {graph::Lrn{size, 0.1F, beta, 2, Layout::nhwc}, {tensor({1, 1, 2, 600})}});
    }
  }
}

TEST(OwnReduction, ReducesOverAnyAxes) {
  using Kind = graph::ReduceKind;
  for (const auto kind : {Kind::mean, Kind::sum, Kind::max, Kind::min, Kind::prod, Kind::l1,
                          Kind::l2, Kind::sum_square, Kind::log_sum, Kind::log_sum_exp}) {
    for (const graph::Ints& axes :
         std::vector<graph::Ints>{{}, {-1}, {1, 2}, {0}, {2}, {0, 2}, {1, 3}, {0, 1, 2, 3}}) {
      for (const bool keep : {false, true}) {
        expect_as_interpreted({graph::Reduce{kind, axes, keep}, {positive({2, 3, 2, 5})}});
      }
    }
    const bool multiplies = kind == Kind::prod;
    expect_as_interpreted(
        {graph::Reduce{kind, {1, 2}, true}, {positive({1, multiplies ? 2 : 14, 5, 300})}});
    expect_as_interpreted(
        {graph::Reduce{kind, {2}, true}, {positive({3, 70, multiplies ? 10 : 333})}});
  }
}

TEST(OwnReduction, PoolsWholeImages) {
  for (const auto kind : {graph::PoolKind::average, graph::PoolKind::max}) {
    expect_as_interpreted({graph::GlobalPool{kind, Layout::nhwc}, {tensor({2, 7, 7, 137})}});
    expect_as_interpreted({graph::GlobalPool{kind, Layout::nchw}, {tensor({2, 37, 7, 7})}});
  }
}

TEST(OwnReduction, ChoosesExtremes) {
  for (const bool smallest : {false, true}) {
    for (const auto axis : {0, 1, -1}) {
      for (const bool last : {false, true}) {
        for (const auto type : {DType::f32, DType::u8, DType::i64}) {
          expect_as_interpreted({graph::ArgExtreme{smallest, axis, true, last, DType::i64},
                                 {tensor({3, 9, 30}, type)}});
        }
        expect_as_interpreted({graph::ArgExtreme{smallest, axis, false, last, DType::i32},
                               {quantized({3, 9, 30}, DType::i8, 0.5F, 4)}});
      }
    }
  }
}

TEST(OwnReduction, TakesTheFirstOnes) {
  for (const bool largest : {false, true}) {
    for (const auto axis : {0, 1, -1}) {
      expect_as_interpreted({graph::TopK{axis, largest}, {tensor({5, 6, 7}), ints({3})}, 2});
    }
  }
}

TEST(OwnPooling, PoolsUnderAnyWindow) {
  const std::vector<graph::Window> windows{
      {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {{3, 2}, {1, 2}, {1, 1}, {1, 0}, {0, 1}, graph::AutoPad::explicit_pads, true},
      {{3, 3}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, graph::AutoPad::same_upper},
      {{2, 2}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, graph::AutoPad::valid}};
  for (const auto& window : windows) {
    for (const auto kind : {graph::PoolKind::average, graph::PoolKind::max}) {
      for (const bool counts : {false, true}) {
        expect_as_interpreted(
            {graph::Pool{kind, window, counts, Layout::nhwc}, {tensor({2, 9, 8, 19})}});
        expect_as_interpreted({graph::Pool{kind, window, counts, Layout::nchw},
                               {tensor({2, 5, 9, 8})},
                               1,
                               graph::kRelu});
      }
    }
  }
  const graph::Window line{{3}, {2}, {1}, {1}, {1}};
  expect_as_interpreted(
      {graph::Pool{graph::PoolKind::max, line, false, Layout::nhwc}, {tensor({2, 9, 5})}});
}

TEST(OwnResize, ResizesAsOnnxDoes) {
  using graph::CoordinateMode;
  using graph::ResizeMode;
  const Given scales{{DType::f32, {4}, stored_as<float>({1, 2, 1.5, 1}), {}}, true};
  for (const auto mode : {ResizeMode::nearest, ResizeMode::linear, ResizeMode::cubic}) {
    for (const auto coordinates : {CoordinateMode::half_pixel, CoordinateMode::pytorch_half_pixel,
                                   CoordinateMode::align_corners, CoordinateMode::asymmetric}) {
      for (const auto nearest :
           {graph::NearestMode::round_prefer_floor, graph::NearestMode::round_prefer_ceil,
            graph::NearestMode::floor, graph::NearestMode::ceil}) {
        const graph::Resize op{mode, coordinates, nearest};
        const Given x = tensor({2, 5, 6, 19});
        expect_as_interpreted({op, {x, left_out(), scales}});
        expect_as_interpreted({op, {x, left_out(), left_out(), ints({2, 3, 9, 19})}});
        expect_as_interpreted({op, {x, left_out(), left_out(), ints({2, 5, 12, 8})}});
        expect_as_interpreted({op, {x, left_out(), left_out(), ints({2, 5, 6, 19})}});
      }
    }
  }
}

TEST(OwnQuantized, GoesBetweenRealAndStoredNumbers) {
  for (const auto type : {DType::u8, DType::i8}) {
    const std::int32_t zero = type == DType::u8 ? 117 : -11;
    const Given reals = tensor({3, 7, 70});
    expect_as_interpreted({.op = graph::Requantize{type},
                           .inputs = {reals},
                           .quantizations = {scale_of(0.021F, zero)}},
                          {.quanta = 0});
    expect_as_interpreted({graph::Requantize{DType::f32}, {quantized({3, 70}, type, 0.021F, zero)}},
                          {.relative = 0});
    for (const auto to : {DType::u8, DType::i8}) {
      expect_as_interpreted({.op = graph::Requantize{to},
                             .inputs = {quantized({3, 70}, type, 0.021F, zero)},
                             .quantizations = {scale_of(0.013F, to == DType::u8 ? 3 : -100)}},
                            {.quanta = 0});
    }
  }
}

TEST(OwnQuantized, RoundsTiesToEven) {
  const Given reals{
      {DType::f32, {8}, stored_as<float>({0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, 126.5}), {}}};
  expect_as_interpreted(
      {.op = graph::Requantize{DType::i8}, .inputs = {reals}, .quantizations = {scale_of(1, 0)}},
      {.quanta = 0});
}

TEST(OwnQuantized, TakesScalesFromOperands) {
  const Given one{{DType::f32, {}, stored_as<float>({0.05}), {}}, true};
  const Given zero{{DType::u8, {}, stored_as<std::uint8_t>({100}), {}}, true};
  const Given several{{DType::f32, {3}, stored_as<float>({0.05, 0.1, 0.02}), {}}, true};
  const Given zeros{{DType::i8, {3}, stored_as<std::int8_t>({0, -3, 5}), {}}, true};
  expect_as_interpreted({graph::QuantizeLinear{}, {tensor({2, 3, 5}), one, zero}});
  expect_as_interpreted({graph::QuantizeLinear{1}, {tensor({2, 3, 5}), several, zeros}});
  expect_as_interpreted({graph::QuantizeLinear{-1}, {tensor({2, 5, 3}), several, zeros}});
  expect_as_interpreted({graph::DequantizeLinear{}, {tensor({2, 3, 5}, DType::u8), one, zero}});
  expect_as_interpreted(
      {graph::DequantizeLinear{1}, {tensor({2, 3, 5}, DType::i8), several, zeros}});
}

TEST(OwnQuantized, CombinesElements) {
  using Kind = graph::ElementwiseKind;
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{1, 14, 14, 72}, {1, 1, 1, 72}}, {{2, 7, 5, 24}, {2, 7, 5, 24}},
      {{2, 7, 5, 24}, {2, 1, 1, 24}},   {{3, 40}, {}},
      {{2, 5, 9, 3}, {2, 1, 9, 1}},     {{4, 1, 3}, {1, 5, 1}}};
  for (const auto type : {DType::u8, DType::i8}) {
    const std::int32_t zero = type == DType::u8 ? 128 : 0;
    for (const auto kind : {Kind::add, Kind::mul, Kind::sub, Kind::max, Kind::min}) {
      for (const auto& [a, b] : shapes) {
        expect_as_interpreted({.op = graph::Elementwise{kind},
                               .inputs = {quantized(a, type, 0.02F, zero - 5),
                                          quantized(b, type, 0.03F, zero + 9, 2)},
                               .quantizations = {scale_of(0.04F, zero)}});
      }
    }
    expect_as_interpreted({.op = graph::Elementwise{Kind::mean},
                           .inputs = {quantized({3, 50}, type, 0.02F, zero),
                                      constant(quantized({50}, type, 0.03F, zero, 2)),
                                      quantized({3, 1}, type, 0.03F, zero, 3)},
                           .activation = graph::kRelu,
                           .quantizations = {scale_of(0.02F, zero)}});
  }
}

TEST(OwnQuantized, AppliesFunctionsByTable) {
  for (const auto type : {DType::u8, DType::i8}) {
    const Given x = quantized({3, 700}, type, 0.05F, type == DType::u8 ? 120 : 5);
    for (const auto& activation : activations()) {
      expect_as_interpreted(
          {.op = graph::Activate{activation}, .inputs = {x}, .quantizations = {scale_of(0.03F, 7)}},
          {.quanta = 0});
    }
    expect_as_interpreted({.op = graph::Unary{graph::UnaryKind::abs},
                           .inputs = {x},
                           .activation = graph::kRelu6,
                           .quantizations = {scale_of(0.03F, 7)}},
                          {.quanta = 0});
  }
}

TEST(OwnQuantized, JoinsTensorsOfDifferentScales) {
  expect_as_interpreted({.op = graph::Concat{-1},
                         .inputs = {quantized({2, 5, 17}, DType::u8, 0.02F, 128),
                                    quantized({2, 5, 33}, DType::u8, 0.05F, 3, 2)},
                         .quantizations = {scale_of(0.04F, 100)}});
  expect_as_interpreted({.op = graph::Concat{1},
                         .inputs = {quantized({2, 5, 17}, DType::i8, 0.02F, 0),
                                    quantized({2, 3, 17}, DType::i8, 0.02F, 0, 2)},
                         .quantizations = {scale_of(0.02F, 0)}},
                        {.quanta = 0});
}

TEST(OwnQuantized, DoesAnythingElseOnReals) {
  const Given x = quantized({2, 7, 7, 24}, DType::u8, 0.02F, 128);
  const auto same = scale_of(0.02F, 128);
  const auto other = scale_of(0.01F, 100);
  const graph::Window window{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  const Given sizes = ints({2, 14, 10, 24});
  for (const auto& result : {same, other}) {
    const auto check = [&](const graph::Operator& op, std::vector<Given> inputs) {
      expect_as_interpreted({.op = op, .inputs = std::move(inputs), .quantizations = {result}});
    };
    check(graph::Softmax{-1}, {x});
    check(graph::GlobalPool{graph::PoolKind::average, Layout::nhwc}, {x});
    check(graph::Pool{graph::PoolKind::average, window, false, Layout::nhwc}, {x});
    check(graph::Pool{graph::PoolKind::max, window, false, Layout::nhwc}, {x});
    check(graph::Resize{graph::ResizeMode::nearest}, {x, left_out(), left_out(), sizes});
    check(graph::Resize{graph::ResizeMode::linear}, {x, left_out(), left_out(), sizes});
    check(graph::Reduce{graph::ReduceKind::mean, {1, 2}}, {x});
    check(graph::Transpose{{0, 3, 1, 2}}, {x});
    check(graph::Elementwise{graph::ElementwiseKind::mul},
          {x, constant(quantized({24}, DType::i8, 0.1F, 0, 3))});
  }
  expect_as_interpreted({.op = graph::Concat{0},
                         .inputs = {x, x},
                         .activation = graph::kRelu6,
                         .quantizations = {same}});
}

TEST(OwnDense, MultipliesMatrices) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const bool known : {false, true}) {
        const Given a = tensor(trans_a ? Shape{37, 13} : Shape{13, 37});
        Given b = tensor(trans_b ? Shape{21, 37} : Shape{37, 21}, DType::f32, 2);
        b.constant = known;
        const graph::Gemm op{0.5F, 2, trans_a, trans_b};
        expect_as_interpreted({op, {a, b}});
        for (const Shape& c : {Shape{21}, Shape{13, 21}, Shape{13, 1}, Shape{}}) {
          expect_as_interpreted({op, {a, b, tensor(c, DType::f32, 3)}, 1, graph::kRelu});
        }
      }
    }
  }
  expect_as_interpreted({graph::Gemm{1, 1, false, true, true},
                         {tensor({2, 150, 20}), constant(tensor({40, 20}, DType::f32, 2)),
                          constant(tensor({40}, DType::f32, 3))}});
}

TEST(OwnDense, MultipliesStacksOfMatrices) {
  const std::vector<std::pair<Shape, Shape>> shapes{{{2, 3, 50, 8}, {2, 3, 8, 50}},
                                                    {{3, 5, 8}, {8, 4}},
                                                    {{5, 8}, {3, 8, 4}},
                                                    {{2, 1, 5, 8}, {3, 8, 4}},
                                                    {{8}, {8, 4}},
                                                    {{3, 5, 8}, {8}},
                                                    {{8}, {8}},
                                                    {{7, 1}, {1, 9}}};
  for (const auto& [a, b] : shapes) {
    expect_as_interpreted({graph::MatMul{}, {tensor(a), tensor(b, DType::f32, 2)}});
  }
  expect_as_interpreted(
      {graph::MatMul{true, false}, {tensor({3, 8, 5}), tensor({3, 8, 4}, DType::f32, 2)}});
  expect_as_interpreted(
      {graph::MatMul{false, true}, {tensor({3, 5, 8}), tensor({3, 4, 8}, DType::f32, 2)}});
}

TEST(OwnDense, Attends) {
  for (const Shape& batch : {Shape{}, Shape{2}}) {
    const auto rows = [&](std::int64_t count) {
      Shape shape = batch;
      shape.insert(shape.end(), {count, 12});
      return shape;
    };
    std::vector<Given> inputs{tensor(rows(19)), tensor(rows(7), DType::f32, 2),
                              tensor(rows(7), DType::f32, 3)};
    for (std::uint64_t i = 0; i < 4; ++i) {
      inputs.push_back(constant({{DType::f32,
                                  {12, 12},
                                  stored_as<float>(random_numbers({12, 12}, 5 + i, -0.3, 0.3)),
                                  {}}}));
      inputs.push_back(constant(tensor({12}, DType::f32, 9 + i)));
    }
    expect_as_interpreted({graph::MultiHeadAttention{3}, inputs});
  }
}

graph::Window window_of(std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                        std::int64_t pad) {
  return {{kernel, kernel}, {stride, stride}, {dilation, dilation}, {pad, pad}, {pad, pad}};
}

TEST(OwnConvolution, ConvolvesWithAnyGroupsAndWindow) {
  struct Case {
    std::int64_t in;
    std::int64_t out;
    std::int64_t groups;
    graph::Window window;
  };
  const std::vector<Case> cases{
      {5, 7, 1, window_of(3, 1, 1, 1)},
      {6, 9, 3, window_of(3, 2, 1, 1)},
      {8, 8, 8, window_of(3, 1, 2, 2)},
      {7, 7, 7, window_of(5, 2, 1, 2)},
      {8, 16, 8, window_of(3, 1, 1, 0)},
      {20, 33, 1, window_of(1, 1, 1, 0)},
      {3, 4, 1, {{3, 2}, {2, 1}, {1, 1}, {0, 0}, {0, 0}, graph::AutoPad::same_lower}}};
  for (const auto& c : cases) {
    const auto& k = c.window.kernel;
    for (const bool biased : {false, true}) {
      std::vector<Given> nhwc{
          tensor({2, 11, 9, c.in}),
          constant(tensor({c.out, k[0], k[1], c.in / c.groups}, DType::f32, 2))};
      std::vector<Given> nchw{
          tensor({2, c.in, 11, 9}),
          constant(tensor({c.out, c.in / c.groups, k[0], k[1]}, DType::f32, 2))};
      if (biased) {
        nhwc.push_back(constant(tensor({c.out}, DType::f32, 3)));
        nchw.push_back(constant(tensor({c.out}, DType::f32, 3)));
      }
      expect_as_interpreted({graph::Conv{c.window, c.groups, Layout::nhwc}, nhwc, 1, graph::kRelu});
      expect_as_interpreted({graph::Conv{c.window, c.groups, Layout::nchw}, nchw});
    }
  }
}

TEST(OwnConvolution, ConvolvesTheOtherWay) {
  struct Case {
    std::int64_t in;
    std::int64_t out;
    std::int64_t groups;
    graph::Window window;
    graph::Ints more;
  };
  const std::vector<Case> cases{
      {5, 7, 1, window_of(2, 2, 1, 0), {0, 0}},
      {6, 9, 3, window_of(3, 2, 1, 1), {1, 0}},
      {8, 8, 8, window_of(3, 1, 2, 2), {0, 0}},
      {4, 6, 2, {{3, 3}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, graph::AutoPad::same_upper}, {0, 0}}};
  for (const auto& c : cases) {
    const auto& k = c.window.kernel;
    const Given bias = constant(tensor({c.out}, DType::f32, 3));
    expect_as_interpreted(
        {graph::ConvTranspose{c.window, c.groups, c.more, {}, Layout::nhwc},
         {tensor({2, 6, 5, c.in}),
          constant(tensor({c.out, k[0], k[1], c.in / c.groups}, DType::f32, 2)), bias}});
    expect_as_interpreted(
        {graph::ConvTranspose{c.window, c.groups, c.more, {}, Layout::nchw},
         {tensor({2, c.in, 6, 5}),
          constant(tensor({c.in, c.out / c.groups, k[0], k[1]}, DType::f32, 2)), bias}});
  }
}

TEST(OwnConvolution, AddsATensorBeforeTheActivation) {
  const Given x = tensor({1, 5, 5, 8});
  const Given weights = constant(tensor({6, 3, 3, 8}, DType::f32, 2));
  const Given bias = constant(tensor({6}, DType::f32, 3));
  const Given addend = tensor({1, 5, 5, 6}, DType::f32, 4);
  const graph::Conv op{window_of(3, 1, 1, 1), 1, Layout::nhwc};
  for (const bool biased : {false, true}) {
    const std::vector<Given> inputs =
        biased ? std::vector{x, weights, bias} : std::vector{x, weights};
    const OneNode convolution{op, inputs};
    const auto sum = OneNode{graph::Elementwise{},
                             {Given{convolution.interpreted().value()[0]}, addend},
                             1,
                             graph::kRelu}
                         .interpreted()
                         .value();
    OneNode fused{op, inputs, 1, graph::kRelu};
    fused.inputs.push_back(addend);
    fused.adds_last_input = true;
    const Task task = fused.task(sum, 2);
    const auto kernel = make_own_kernel(task);
    ASSERT_NE(kernel, nullptr);
    expect_same(sum[0], run_kernel(*kernel, task, fused.inputs)[0], {});
  }
}

TEST(OwnConvolution, ConvolvesQuantizedTensors) {
  Given weights = constant(quantized({6, 3, 3, 4}, DType::i8, 0.01F, 0, 2));
  weights.value.quantization =
      graph::Quantization{{0.01F, 0.02F, 0.03F, 0.01F, 0.02F, 0.005F}, {0, 0, 0, 0, 0, 0}, 0};
  Given bias{{DType::i32, {6}, stored_as<std::int32_t>({100, -2000, 300, 0, 5, 7000}), {}}, true};
  bias.value.quantization = graph::Quantization{
      {0.0002F, 0.0004F, 0.0006F, 0.0002F, 0.0004F, 0.0001F}, {0, 0, 0, 0, 0, 0}, 0};
  expect_as_interpreted({.op = graph::Conv{window_of(3, 1, 1, 1), 1, Layout::nhwc},
                         .inputs = {quantized({1, 6, 6, 4}, DType::u8, 0.02F, 128), weights, bias},
                         .activation = graph::kRelu,
                         .quantizations = {scale_of(0.1F, 10)}});
}

}  // namespace
}  // namespace fleetfit::engine
