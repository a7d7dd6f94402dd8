// Our own kernels that multiply matrices and convolve, against the interpreter.
#include <gtest/gtest.h>

#include "tests/engine/one_node.h"

namespace fleetfit::engine {
namespace {

using graph::Layout;

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
