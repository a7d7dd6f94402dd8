// Each kernel that XNNPACK gives, on one operator, against the interpreter.
#include <gtest/gtest.h>
#include <pthreadpool.h>

#include <array>
#include <atomic>
#include <cmath>
#include <set>

#include "engine/libraries.h"
#include "engine/xnnpack/xnnpack.h"
#include "tests/engine/one_node.h"

namespace fleetfit::engine {
namespace {

using graph::Activation;
using graph::ActivationKind;
using graph::AutoPad;
using graph::Ints;
using graph::Layout;
using graph::Quantization;
using graph::TensorData;
using graph::Value;

Value random_values(DType type, Shape shape, std::uint64_t seed, double center, double spread) {
  const auto count = static_cast<std::size_t>(graph::elements(shape));
  return {type,
          std::move(shape),
          TensorData::generate(
              {.dtype = type, .count = count, .center = center, .spread = spread, .seed = seed}),
          {}};
}

Value floats(Shape shape, std::uint64_t seed, double spread = 1) {
  return random_values(DType::f32, std::move(shape), seed, 0, spread);
}

Quantization one_scale(float scale, std::int32_t zero_point) {
  return {{scale}, {zero_point}, std::nullopt};
}

/// Bytes over most of their range.
Value bytes(DType type, Shape shape, std::uint64_t seed, Quantization quantization) {
  auto value = random_values(type, std::move(shape), seed, type == DType::u8 ? 128 : 0, 120);
  value.quantization = std::move(quantization);
  return value;
}

/// A result that is the same number everywhere would be right by accident.
bool is_varied(const Value& value) {
  const auto stored = value.data.bytes();
  const std::set<std::byte> different(stored.begin(), stored.end());
  return stored.size() < 16 || different.size() > 3;
}

/// What XNNPACK gives is what the interpreter gives, on one thread and on two.
void expect_same(const OneNode& one) {
  const auto expected = one.interpreted();
  ASSERT_TRUE(expected) << expected.error().message;
  for (const int threads : {1, 2}) {
    const Task task = one.task(*expected, threads);
    const KernelPtr kernel = make_xnnpack_kernel(task);
    ASSERT_TRUE(kernel) << graph::describe(task.node);
    use_threads(threads);
    const auto actual = run_kernel(*kernel, task, one.inputs);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      SCOPED_TRACE(kernel->name());
      EXPECT_TRUE(is_varied((*expected)[i]));
      engine::expect_same((*expected)[i], actual[i], {});
    }
  }
}

void expect_none(const OneNode& one) {
  const auto expected = one.interpreted();
  ASSERT_TRUE(expected) << expected.error().message;
  EXPECT_FALSE(make_xnnpack_kernel(one.task(*expected, 1)));
}

graph::Window window(Ints kernel, Ints strides = {1, 1}, Ints dilations = {1, 1},
                     Ints begin = {0, 0}, Ints end = {0, 0}) {
  return {.kernel = std::move(kernel),
          .strides = std::move(strides),
          .dilations = std::move(dilations),
          .pads_begin = std::move(begin),
          .pads_end = std::move(end)};
}

// --- Convolutions

struct ConvCase {
  std::string name;
  Shape image;    // batch x height x width x channels
  Shape weights;  // outputs x height x width x inputs per group
  graph::Window window;
  std::int64_t groups = 1;
};

std::vector<ConvCase> conv_cases() {
  auto same = window({3, 3}, {2, 2});
  same.auto_pad = AutoPad::same_upper;
  return {
      {"Pixel", {2, 5, 7, 13}, {19, 1, 1, 13}, window({1, 1})},
      {"PixelWithStride", {1, 9, 8, 16}, {33, 1, 1, 16}, window({1, 1}, {2, 2})},
      {"FirstLayer", {1, 21, 17, 3}, {24, 3, 3, 3}, window({3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1})},
      {"SameUpper", {1, 12, 11, 5}, {7, 3, 3, 5}, same},
      {"UnevenPads", {1, 9, 10, 6}, {5, 3, 2, 6}, window({3, 2}, {1, 2}, {1, 1}, {2, 0}, {1, 1})},
      {"Dilated", {1, 15, 14, 8}, {9, 3, 3, 8}, window({3, 3}, {1, 1}, {2, 3}, {2, 3}, {2, 3})},
      {"Groups", {1, 8, 9, 12}, {18, 3, 3, 4}, window({3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}), 3},
      {"Depthwise",
       {2, 11, 9, 21},
       {21, 3, 3, 1},
       window({3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
       21},
      {"DepthwiseWithStride",
       {1, 14, 15, 32},
       {32, 5, 5, 1},
       window({5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}),
       32},
      {"DepthwiseTwice",
       {1, 9, 9, 10},
       {20, 3, 3, 1},
       window({3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
       10},
      {"DepthwiseSevenBySeven",
       {1, 10, 10, 17},
       {17, 7, 7, 1},
       window({7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}),
       17},
      {"OneDimension",
       {2, 23, 6},
       {11, 3, 6},
       {.kernel = {3}, .strides = {2}, .dilations = {1}, .pads_begin = {1}, .pads_end = {1}}},
  };
}

class XnnpackConvolutions : public testing::TestWithParam<ConvCase> {
 protected:
  graph::Conv conv() const {
    return {.window = GetParam().window, .groups = GetParam().groups, .layout = Layout::nhwc};
  }
  std::int64_t outputs() const { return GetParam().weights[0]; }
  /// What keeps results within their range: sums of n random products grow as the root of n.
  float result_scale(float product) const {
    const auto& weights = GetParam().weights;
    const auto terms = static_cast<float>(graph::elements(weights) / weights[0]);
    return product * std::sqrt(terms) * 60;
  }
  Value stored_bias(const std::vector<float>& scales) const {
    auto bias = random_values(DType::i32, {outputs()}, 3, 0, 5000);
    const std::vector<std::int32_t> zeros(scales.size(), 0);
    bias.quantization =
        Quantization{scales, zeros, scales.size() > 1 ? std::optional(0) : std::nullopt};
    return bias;
  }
};

TEST_P(XnnpackConvolutions, OfFloats) {
  for (const Activation& activation :
       {Activation{}, graph::kRelu, Activation{ActivationKind::clip, -0.25F, 0.5F},
        graph::kHardSwish, graph::kSigmoid, graph::kSilu, graph::kHardSigmoid, graph::kSelu,
        Activation{ActivationKind::elu, 0.5F}, Activation{ActivationKind::leaky_relu, 0.1F}}) {
    expect_same({.op = conv(),
                 .inputs = {{floats(GetParam().image, 1)},
                            {floats(GetParam().weights, 2), true},
                            {floats({outputs()}, 3), true}},
                 .activation = activation});
  }
  expect_same({.op = conv(),
               .inputs = {{floats(GetParam().image, 1)}, {floats(GetParam().weights, 2), true}}});
}

TEST_P(XnnpackConvolutions, OfSignedBytes) {
  constexpr float kIn = 0.02F;
  constexpr float kWeight = 0.01F;
  const auto result = one_scale(result_scale(kIn * kWeight), -7);
  for (const Activation& activation :
       {Activation{}, graph::kRelu, Activation{ActivationKind::clip, 0, 40 * result.scales[0]}}) {
    expect_same({.op = conv(),
                 .inputs = {{bytes(DType::i8, GetParam().image, 1, one_scale(kIn, 11))},
                            {bytes(DType::i8, GetParam().weights, 2, one_scale(kWeight, 0)), true},
                            {stored_bias({kIn * kWeight}), true}},
                 .activation = activation,
                 .quantizations = {result}});
  }
}

TEST_P(XnnpackConvolutions, OfSignedBytesWithAScaleForEachChannel) {
  constexpr float kIn = 0.02F;
  std::vector<float> scales;
  std::vector<float> bias_scales;
  for (std::int64_t i = 0; i < outputs(); ++i) {
    scales.push_back(0.005F + 0.001F * static_cast<float>(i % 7));
    bias_scales.push_back(scales.back() * kIn);
  }
  const std::vector<std::int32_t> zeros(scales.size(), 0);
  expect_same({.op = conv(),
               .inputs = {{bytes(DType::i8, GetParam().image, 1, one_scale(kIn, -3))},
                          {bytes(DType::i8, GetParam().weights, 2, {scales, zeros, 0}), true},
                          {stored_bias(bias_scales), true}},
               .quantizations = {one_scale(result_scale(kIn * 0.008F), 5)}});
}

TEST_P(XnnpackConvolutions, OfUnsignedBytesWithAWeightZeroPoint) {
  constexpr float kIn = 0.02F;
  constexpr float kWeight = 0.01F;
  const auto result = one_scale(result_scale(kIn * kWeight), 120);
  for (const DType weight_type : {DType::u8, DType::i8}) {
    const auto weights = bytes(weight_type, GetParam().weights, 2,
                               one_scale(kWeight, weight_type == DType::u8 ? 131 : 3));
    for (const Activation& activation : {Activation{}, graph::kRelu}) {
      expect_same({.op = conv(),
                   .inputs = {{bytes(DType::u8, GetParam().image, 1, one_scale(kIn, 125))},
                              {weights, true},
                              {stored_bias({kIn * kWeight}), true}},
                   .activation = activation,
                   .quantizations = {result}});
    }
    expect_same({.op = conv(),  // a bias in floats is counted in products
                 .inputs = {{bytes(DType::u8, GetParam().image, 1, one_scale(kIn, 125))},
                            {weights, true},
                            {floats({outputs()}, 3), true}},
                 .quantizations = {result}});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, XnnpackConvolutions, testing::ValuesIn(conv_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(XnnpackKernels, ConvolutionsWithActivationsThatTheLibraryLacks) {
  const auto values = floats({2, 60}, 1);
  for (const Activation& activation : {graph::kTanh, graph::kGelu}) {
    const OneNode alone{.op = graph::Activate{activation}, .inputs = {{values}}};
    ASSERT_TRUE(make_own_kernel(alone.task(alone.interpreted().value(), 1)));
    expect_same({.op = graph::Conv{.window = window({3, 3}), .layout = Layout::nhwc},
                 .inputs = {{floats({1, 9, 8, 6}, 1)}, {floats({5, 3, 3, 6}, 2), true}},
                 .activation = activation});
  }
}

TEST(XnnpackKernels, TransposedConvolutions) {
  struct Case {
    Shape image;
    Shape weights;
    graph::ConvTranspose op;
  };
  auto same = window({3, 3}, {2, 2});
  same.auto_pad = AutoPad::same_upper;
  const std::vector<Case> cases{
      {{1, 5, 4, 7}, {9, 2, 2, 7}, {.window = window({2, 2}, {2, 2}), .output_padding = {0, 0}}},
      {{2, 5, 4, 7},
       {9, 3, 3, 7},
       {.window = window({3, 3}, {2, 2}, {1, 1}, {1, 0}, {1, 1}), .output_padding = {1, 0}}},
      {{1, 6, 5, 8},
       {12, 3, 3, 4},
       {.window = window({3, 3}, {1, 1}, {2, 1}, {1, 1}, {0, 1}),
        .groups = 2,
        .output_padding = {0, 0}}},
      {{1, 6, 5, 8}, {10, 3, 3, 8}, {.window = same, .output_padding = {0, 0}}},
      {{1, 6, 5, 4},
       {6, 4, 4, 4},
       {.window = window({4, 4}, {3, 3}), .output_padding = {0, 0}, .output_shape = {17, 15}}},
  };
  for (auto [image, weights, op] : cases) {
    op.layout = Layout::nhwc;
    const auto outputs = weights[0];
    expect_same(
        {.op = op,
         .inputs = {{floats(image, 1)}, {floats(weights, 2), true}, {floats({outputs}, 3), true}},
         .activation = graph::kRelu});
    expect_same({.op = op,
                 .inputs = {{bytes(DType::u8, image, 1, one_scale(0.02F, 125))},
                            {bytes(DType::u8, weights, 2, one_scale(0.01F, 131)), true},
                            {floats({outputs}, 3), true}},
                 .quantizations = {one_scale(0.08F, 120)}});
    expect_same({.op = op,
                 .inputs = {{bytes(DType::i8, image, 1, one_scale(0.02F, 5))},
                            {bytes(DType::i8, weights, 2, one_scale(0.01F, 0)), true},
                            {floats({outputs}, 3), true}},
                 .quantizations = {one_scale(0.08F, -3)}});
  }
}

// --- Products of matrices

TEST(XnnpackKernels, ProductsWithConstantMatrices) {
  const auto a = floats({3, 5, 17}, 1);
  const auto bias = floats({1, 23}, 3);
  for (const bool trans_b : {false, true}) {
    const auto b = floats(trans_b ? Shape{23, 17} : Shape{17, 23}, 2);
    expect_same({.op = graph::Gemm{.trans_b = trans_b}, .inputs = {{a}, {b, true}, {bias, true}}});
    expect_same({.op = graph::Gemm{.trans_b = trans_b, .keep_leading = true},
                 .inputs = {{a}, {b, true}},
                 .activation = graph::kHardSwish});
    expect_same({.op = graph::MatMul{.trans_b = trans_b}, .inputs = {{a}, {b, true}}});

    auto rows = b.shape;
    std::vector<float> scales;
    for (int i = 0; i < 23; ++i) scales.push_back(0.006F + 0.001F * static_cast<float>(i % 5));
    const Quantization channels{scales, std::vector<std::int32_t>(scales.size(), 0),
                                trans_b ? 0 : 1};
    expect_same({.op = graph::Gemm{.trans_b = trans_b},
                 .inputs = {{bytes(DType::i8, a.shape, 1, one_scale(0.02F, 5))},
                            {bytes(DType::i8, rows, 2, channels), true},
                            {bias, true}},
                 .quantizations = {one_scale(0.05F, -3)}});
    expect_same({.op = graph::Gemm{.trans_b = trans_b},
                 .inputs = {{bytes(DType::u8, a.shape, 1, one_scale(0.02F, 125))},
                            {bytes(DType::u8, rows, 2, one_scale(0.01F, 99)), true},
                            {bias, true}},
                 .activation = graph::kRelu,
                 .quantizations = {one_scale(0.05F, 60)}});
  }
}

// --- Pooling

TEST(XnnpackKernels, Pools) {
  auto rounded_up = window({3, 3}, {2, 2});
  rounded_up.ceil_mode = true;
  for (const auto& over :
       {window({2, 2}, {2, 2}), window({3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}),
        window({3, 2}, {1, 3}, {1, 1}, {0, 1}, {2, 0}), window({5, 7}, {1, 1}), rounded_up}) {
    for (const auto kind : {graph::PoolKind::max, graph::PoolKind::average}) {
      const graph::Pool pool{.kind = kind, .window = over, .layout = Layout::nhwc};
      expect_same({.op = pool, .inputs = {{floats({2, 9, 10, 19}, 1)}}});
      expect_same({.op = pool, .inputs = {{floats({1, 9, 10, 3}, 1)}}, .activation = graph::kRelu});
    }
    for (const DType type : {DType::i8, DType::u8}) {
      const auto stored = one_scale(0.02F, 7);
      expect_same({.op = graph::Pool{.window = over, .layout = Layout::nhwc},
                   .inputs = {{bytes(type, {1, 9, 10, 19}, 1, stored)}},
                   .activation = graph::kRelu,
                   .quantizations = {stored}});
    }
  }
  expect_same({.op = graph::Pool{.window = window({3, 3}, {1, 1}, {2, 2}, {2, 1}, {1, 2}),
                                 .layout = Layout::nhwc},
               .inputs = {{floats({1, 9, 10, 19}, 1)}}});
  expect_same({.op = graph::Pool{.kind = graph::PoolKind::average,
                                 .window = window({3, 2}, {2, 1}),
                                 .layout = Layout::nhwc},
               .inputs = {{bytes(DType::u8, {1, 9, 10, 19}, 1, one_scale(0.02F, 7))}},
               .quantizations = {one_scale(0.015F, 10)}});
  expect_same({.op = graph::Pool{.window = {.kernel = {3},
                                            .strides = {2},
                                            .dilations = {1},
                                            .pads_begin = {1},
                                            .pads_end = {0}},
                                 .layout = Layout::nhwc},
               .inputs = {{floats({2, 14, 5}, 1)}}});
}

TEST(XnnpackKernels, AveragesOfTheWholeImage) {
  const graph::Pool pool{
      .kind = graph::PoolKind::average, .window = window({6, 5}, {6, 5}), .layout = Layout::nhwc};
  expect_same({.op = pool,
               .inputs = {{bytes(DType::i8, {2, 6, 5, 19}, 1, one_scale(0.02F, 7))}},
               .quantizations = {one_scale(0.01F, -10)}});
  expect_same({.op = pool, .inputs = {{floats({2, 6, 5, 19}, 1)}}});
}

TEST(XnnpackKernels, GlobalPools) {
  for (const Shape& shape : {Shape{2, 7, 5, 21}, Shape{1, 3, 3, 40}, Shape{3, 11, 4}}) {
    expect_same({.op = graph::GlobalPool{.layout = Layout::nhwc}, .inputs = {{floats(shape, 1)}}});
    expect_same({.op = graph::GlobalPool{.kind = graph::PoolKind::max, .layout = Layout::nhwc},
                 .inputs = {{floats(shape, 1)}}});
    const Ints axes = shape.size() == 4 ? Ints{-2, 1} : Ints{1};
    expect_same({.op = graph::Reduce{.axes = axes, .keep_dims = false},
                 .inputs = {{floats(shape, 1)}},
                 .activation = graph::kHardSwish});
    for (const DType type : {DType::i8, DType::u8}) {
      expect_same({.op = graph::GlobalPool{.layout = Layout::nhwc},
                   .inputs = {{bytes(type, shape, 1, one_scale(0.02F, 9))}},
                   .quantizations = {one_scale(0.01F, 30)}});
    }
  }
}

// --- Functions of one tensor

TEST(XnnpackKernels, Activations) {
  for (const Activation& function :
       {graph::kRelu, graph::kRelu6, graph::kHardSwish, graph::kSigmoid, graph::kSilu,
        graph::kHardSigmoid, graph::kSelu, Activation{ActivationKind::elu, 1},
        Activation{ActivationKind::leaky_relu, 0.01F}}) {
    expect_same({.op = graph::Activate{function}, .inputs = {{floats({3, 1237}, 1, 8)}}});
  }
  // One after the other.
  expect_same({.op = graph::Activate{graph::kSilu},
               .inputs = {{floats({3, 1237}, 1, 8)}},
               .activation = Activation{ActivationKind::clip, -0.1F, 2}});
}

TEST(XnnpackKernels, ActivationsOfBytes) {
  const auto stored = one_scale(0.05F, 4);
  const Shape shape{3, 1237};
  for (const DType type : {DType::i8, DType::u8}) {
    expect_same({.op = graph::Activate{graph::kRelu},
                 .inputs = {{bytes(type, shape, 1, stored)}},
                 .quantizations = {stored}});
    expect_same({.op = graph::Activate{graph::kSigmoid},
                 .inputs = {{bytes(type, shape, 1, one_scale(0.03F, 9))}},
                 .quantizations = {one_scale(1.0F / 256, type == DType::u8 ? 0 : -128)}});
    expect_same({.op = graph::Activate{graph::kTanh},
                 .inputs = {{bytes(type, shape, 1, one_scale(0.03F, 9))}},
                 .quantizations = {one_scale(1.0F / 128, type == DType::u8 ? 128 : 0)}});
  }
  expect_same({.op = graph::Activate{Activation{ActivationKind::elu, 1}},
               .inputs = {{bytes(DType::i8, shape, 1, one_scale(0.03F, 9))}},
               .quantizations = {one_scale(0.03F, 9)}});
  expect_same({.op = graph::Activate{Activation{ActivationKind::leaky_relu, 0.2F}},
               .inputs = {{bytes(DType::u8, shape, 1, one_scale(0.03F, 110))}},
               .quantizations = {one_scale(0.03F, 90)}});
}

TEST(XnnpackKernels, UnaryFunctions) {
  using Kind = graph::UnaryKind;
  for (const Kind kind :
       {Kind::abs, Kind::neg, Kind::floor, Kind::ceil, Kind::round, Kind::square}) {
    expect_same({.op = graph::Unary{kind}, .inputs = {{floats({7, 331}, 1, 50)}}});
  }
  expect_same(
      {.op = graph::Unary{Kind::sqrt}, .inputs = {{random_values(DType::f32, {7, 331}, 1, 5, 5)}}});
}

TEST(XnnpackKernels, ParametricRelu) {
  for (const Shape& slope : {Shape{13}, Shape{1, 1, 13}, Shape{1}}) {
    expect_same(
        {.op = graph::PRelu{}, .inputs = {{floats({2, 5, 4, 13}, 1)}, {floats(slope, 2), true}}});
  }
  expect_none(
      {.op = graph::PRelu{}, .inputs = {{floats({13, 13}, 1)}, {floats({13, 1}, 2), true}}});
}

TEST(XnnpackKernels, SoftmaxOfTheLastDimensions) {
  expect_same({.op = graph::Softmax{}, .inputs = {{floats({3, 5, 77}, 1, 4)}}});
  expect_same(
      {.op = graph::Softmax{.axis = 1, .to_end = true}, .inputs = {{floats({3, 5, 77}, 1, 4)}}});
  expect_same({.op = graph::Softmax{},
               .inputs = {{bytes(DType::u8, {3, 30}, 1, one_scale(0.02F, 100))}},
               .quantizations = {one_scale(1.0F / 256, 0)}});
  expect_none({.op = graph::Softmax{.axis = 1}, .inputs = {{floats({3, 5, 77}, 1)}}});
  expect_none({.op = graph::Softmax{.log = true}, .inputs = {{floats({3, 77}, 1)}}});
}

// --- Two tensors

TEST(XnnpackKernels, TwoTensorsWithBroadcasting) {
  using Kind = graph::ElementwiseKind;
  struct Shapes {
    Shape a;
    Shape b;
  };
  for (const auto& [a, b] : std::vector<Shapes>{{{2, 5, 7, 9}, {2, 5, 7, 9}},
                                                {{2, 5, 7, 9}, {9}},
                                                {{2, 5, 7, 9}, {2, 1, 1, 9}},
                                                {{7, 1}, {3, 1, 40}},
                                                {{2, 5, 7, 9}, {}},
                                                {{1}, {4, 33}},
                                                {{2, 3, 2, 3, 2, 5}, {3, 1, 3, 1, 5}}}) {
    for (const Kind kind : {Kind::add, Kind::sub, Kind::mul, Kind::div, Kind::min, Kind::max,
                            Kind::sum, Kind::squared_difference}) {
      const auto divisor = random_values(DType::f32, b, 2, 2, 1);
      for (const bool constant : {false, true}) {
        expect_same(
            {.op = graph::Elementwise{kind}, .inputs = {{floats(a, 1, 3)}, {divisor, constant}}});
      }
      expect_same({.op = graph::Elementwise{kind},
                   .inputs = {{floats(a, 1, 3)}, {divisor}},
                   .activation = Activation{ActivationKind::clip, -1, 3.5F}});
    }
    for (const Kind kind : {Kind::add, Kind::sub, Kind::mul}) {
      for (const DType type : {DType::i8, DType::u8}) {
        expect_same({.op = graph::Elementwise{kind},
                     .inputs = {{bytes(type, a, 1, one_scale(0.02F, 9))},
                                {bytes(type, b, 2, one_scale(0.03F, 17)), true}},
                     .quantizations = {one_scale(kind == Kind::mul ? 0.04F : 0.03F, 30)}});
      }
    }
  }
}

// --- Movement

TEST(XnnpackKernels, Conversions) {
  const Shape shape{5, 411};
  for (const DType type : {DType::i8, DType::u8}) {
    const auto stored = one_scale(0.01F, 13);
    expect_same({.op = graph::Requantize{DType::f32}, .inputs = {{bytes(type, shape, 1, stored)}}});
    expect_same({.op = graph::Requantize{type},
                 .inputs = {{floats(shape, 1, 2)}},
                 .quantizations = {stored}});
  }
}

TEST(XnnpackKernels, JoinedAndSplitTensors) {
  for (const std::int64_t axis : {0, 1, 2, -1}) {
    Shape first{4, 3, 5};
    Shape second{4, 3, 5};
    second[static_cast<std::size_t>(axis < 0 ? 2 : axis)] = 7;
    expect_same({.op = graph::Concat{axis},
                 .inputs = {{floats(first, 1)}, {floats(second, 2), true}, {floats(first, 3)}},
                 .activation = graph::kHardSwish});
    const auto stored = one_scale(0.02F, 3);
    expect_same(
        {.op = graph::Concat{axis},
         .inputs = {{bytes(DType::u8, first, 1, stored)}, {bytes(DType::u8, second, 2, stored)}},
         .quantizations = {stored}});
  }
  for (const std::int64_t axis : {0, 1, -1}) {
    expect_same({.op = graph::Split{axis},
                 .inputs = {{floats({9, 9, 9}, 1)}, ints({2, 4, 3})},
                 .outputs = 3});
  }
  expect_none({.op = graph::Concat{0},
               .inputs = {{bytes(DType::u8, {2, 9}, 1, one_scale(0.02F, 3))},
                          {bytes(DType::u8, {2, 9}, 2, one_scale(0.03F, 3))}},
               .quantizations = {one_scale(0.03F, 3)}});
}

TEST(XnnpackKernels, Copies) {
  expect_same({.op = graph::Identity{}, .inputs = {{floats({3, 1237}, 1)}}});
  expect_same({.op = graph::Reshape{},
               .inputs = {{floats({3, 20}, 1)}, ints({4, 15})},
               .activation = graph::kRelu});
}

TEST(XnnpackKernels, Padding) {
  const Value value{DType::f32, {}, TensorData::copy(std::vector<float>{-2.5F}), {}};
  expect_same(
      {.op = graph::Pad{}, .inputs = {{floats({2, 5, 4, 3}, 1)}, ints({0, 1, 2, 0, 0, 3, 0, 1})}});
  expect_same(
      {.op = graph::Pad{}, .inputs = {{floats({9, 9}, 1)}, ints({1, 2, 0, 3}), {value, true}}});
  const auto stored = one_scale(0.02F, 77);
  expect_same(
      {.op = graph::Pad{},
       .inputs = {{bytes(DType::u8, {2, 5, 4, 3}, 1, stored)}, ints({0, 1, 2, 0, 0, 3, 0, 1})},
       .quantizations = {stored}});
  expect_none({.op = graph::Pad{}, .inputs = {{floats({9, 9}, 1)}, ints({-1, 2, 0, 3})}});
  expect_none({.op = graph::Pad{graph::PadMode::reflect},
               .inputs = {{floats({9, 9}, 1)}, ints({1, 2, 0, 3})}});
}

TEST(XnnpackKernels, BilinearResizes) {
  using Mode = graph::CoordinateMode;
  for (const Mode mode :
       {Mode::half_pixel, Mode::pytorch_half_pixel, Mode::align_corners, Mode::asymmetric}) {
    const graph::Resize resize{.mode = graph::ResizeMode::linear, .coordinates = mode};
    for (const Ints& sizes : {Ints{2, 13, 12, 5}, Ints{2, 4, 3, 5}, Ints{2, 7, 30, 5}}) {
      expect_same({.op = resize,
                   .inputs = {{floats({2, 7, 6, 5}, 1)}, left_out(), left_out(), ints(sizes)}});
      for (const DType type : {DType::i8, DType::u8}) {
        const auto stored = one_scale(0.02F, 7);
        expect_same({.op = resize,
                     .inputs = {{bytes(type, {2, 7, 6, 5}, 1, stored)},
                                left_out(),
                                left_out(),
                                ints(sizes)},
                     .quantizations = {stored}});
      }
    }
  }
  // Five thirds of seven are eleven and two thirds, which the library takes for eleven.
  const Value scales{DType::f32, {4}, TensorData::copy(std::vector<float>{1, 5.0F / 3, 2, 1}), {}};
  expect_none({.op = graph::Resize{.mode = graph::ResizeMode::linear},
               .inputs = {{floats({2, 7, 6, 5}, 1)}, left_out(), {scales, true}}});
}

TEST(XnnpackKernels, DepthToSpaceAndChannelShuffle) {
  expect_same({.op = graph::DepthToSpace{.block = 3, .layout = Layout::nhwc},
               .inputs = {{floats({2, 4, 5, 18}, 1)}}});
  expect_none(
      {.op = graph::DepthToSpace{.block = 3, .column_row_depth = true, .layout = Layout::nhwc},
       .inputs = {{floats({2, 4, 5, 18}, 1)}}});
  for (const std::int64_t groups : {2, 3, 6}) {
    const graph::ChannelShuffle shuffle{.groups = groups, .layout = Layout::nhwc};
    expect_same({.op = shuffle, .inputs = {{floats({2, 4, 5, 18}, 1)}}});
    const auto stored = one_scale(0.02F, 7);
    expect_same({.op = shuffle,
                 .inputs = {{bytes(DType::u8, {2, 4, 5, 18}, 1, stored)}},
                 .quantizations = {stored}});
  }
}

// --- What it does not take

TEST(XnnpackKernels, AreNotThereForOtherTasks) {
  const auto image = floats({1, 6, 6, 4}, 1);
  const auto weights = floats({8, 3, 3, 4}, 2);
  const graph::Conv conv{.window = window({3, 3}), .layout = Layout::nhwc};
  expect_none({.op = conv, .inputs = {{image}, {weights}}});  // weights that change
  expect_none({.op = graph::Conv{.window = window({3, 3})},   // channels first
               .inputs = {{floats({1, 4, 6, 6}, 1)}, {floats({8, 4, 3, 3}, 2), true}}});
  expect_none({.op = graph::MatMul{}, .inputs = {{floats({4, 5}, 1)}, {floats({5, 6}, 2)}}});
  expect_none({.op = graph::Unary{graph::UnaryKind::erf}, .inputs = {{image}}});
  expect_none({.op = graph::Pool{.kind = graph::PoolKind::average,
                                 .window = window({3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
                                 .count_include_pad = true,
                                 .layout = Layout::nhwc},
               .inputs = {{image}}});
  // Unsigned images with a scale for each channel of the weights.
  const std::vector<float> scales(8, 0.01F);
  expect_none(
      {.op = conv,
       .inputs = {{bytes(DType::u8, image.shape, 1, one_scale(0.02F, 3))},
                  {bytes(DType::i8, weights.shape, 2, {scales, std::vector<std::int32_t>(8, 0), 0}),
                   true}},
       .quantizations = {one_scale(0.05F, 128)}});

  const OneNode one{.op = conv, .inputs = {{image}, {weights, true}}};
  Task task = one.task(one.interpreted().value(), 1);
  EXPECT_TRUE(make_xnnpack_kernel(task));
  task.adds_last_input = true;
  EXPECT_FALSE(make_xnnpack_kernel(task));
  task.adds_last_input = false;
  task.inputs[0].format = Format::blocked;
  EXPECT_FALSE(make_xnnpack_kernel(task));
}

// --- Threads

/// libpthreadpool would read far behind the end of a pool of ours, so that the trials above with
/// two threads show the same by not falling over.
TEST(XnnpackThreads, AreOurs) {
  EXPECT_TRUE(xnnpack::pool_is_ours());
  pthreadpool pool{3};
  EXPECT_EQ(pthreadpool_get_threads_count(&pool), 3U);
  EXPECT_EQ(pthreadpool_get_threads_count(nullptr), 1U);
}

TEST(XnnpackThreads, CoverEveryTileOnce) {
  use_threads(2);
  pthreadpool pool{2};
  struct Cells {
    std::array<std::atomic<int>, 2 * 3 * 5 * 7> visits{};
  } cells;
  pthreadpool_parallelize_4d_tile_2d(
      &pool,
      [](void* context, size_t i, size_t j, size_t k, size_t l, size_t tile_k, size_t tile_l) {
        for (size_t a = k; a < k + tile_k; ++a) {
          for (size_t b = l; b < l + tile_l; ++b) {
            ++static_cast<Cells*>(context)->visits[((i * 3 + j) * 5 + a) * 7 + b];
          }
        }
      },
      &cells, 2, 3, 5, 7, 2, 3, 0);
  for (const auto& visits : cells.visits) EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace fleetfit::engine
