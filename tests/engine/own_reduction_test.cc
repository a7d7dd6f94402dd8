// Our own kernels that normalize, reduce, pool and resize, against the interpreter.
#include <gtest/gtest.h>

#include "tests/engine/one_node.h"

namespace fleetfit::engine {
namespace {

using graph::Layout;

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

}  // namespace
}  // namespace fleetfit::engine
