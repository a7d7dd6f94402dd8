// Our own kernels that work element by element, and activations, against the interpreter.
#include <gtest/gtest.h>

#include "tests/engine/one_node.h"

namespace fleetfit::engine {
namespace {

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

}  // namespace
}  // namespace fleetfit::engine
