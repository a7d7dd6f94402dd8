// Our own kernels that work on quantized tensors, against the interpreter.
#include <gtest/gtest.h>

#include "tests/engine/one_node.h"

namespace fleetfit::engine {
namespace {

using graph::Layout;

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

}  // namespace
}  // namespace fleetfit::engine
