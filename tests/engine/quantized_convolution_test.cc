// Quantized convolutions one by one against the interpreter: kernel sizes, activations, zero
// points.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "fleetfit/core/random.h"
#include "fleetfit/graph/shape_inference.h"
#include "tests/engine/compare.h"

namespace fleetfit::engine {
namespace {

using graph::Activation;
using graph::DType;
using graph::Graph;
using graph::Quantization;
using graph::TensorData;

struct ConvCase {
  std::string name;
  std::int64_t channels;
  std::int64_t out;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t groups;
};

struct Quantities {
  DType in = DType::u8;
  std::int32_t in_zero = 0;
  DType out = DType::u8;
  std::int32_t out_zero = 0;
};

template <class T>
TensorData random_whole(std::size_t count, int low, int high, std::uint64_t seed) {
  core::Random random(seed);
  std::vector<T> values(count);
  for (T& value : values)
    value = static_cast<T>(
        low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1))));
  return TensorData::copy(values);
}

Quantization one_scale(float scale, std::int32_t zero) { return {{scale}, {zero}, std::nullopt}; }

/// A graph of one quantized convolution with per-channel weights.
Graph quantized_conv(const ConvCase& shape, const Activation& activation,
                     const Quantities& quantities) {
  Graph graph;
  constexpr std::int64_t kSize = 9;
  const auto input = graph.add_tensor({.name = "x",
                                       .dtype = quantities.in,
                                       .shape = graph::Shape{1, kSize, kSize, shape.channels},
                                       .quantization = one_scale(0.02F, quantities.in_zero)});
  const graph::Shape weight_shape{shape.out, shape.kernel, shape.kernel,
                                  shape.channels / shape.groups};
  const auto count = static_cast<std::size_t>(graph::elements(weight_shape));
  Quantization weight_scales{.axis = 0};
  Quantization bias_scales{.axis = 0};
  const auto fan_in = static_cast<float>(count) / static_cast<float>(shape.out);
  for (std::int64_t c = 0; c < shape.out; ++c) {
    const float scale = (1.0F + static_cast<float>(c % 3)) * 0.01F / std::sqrt(fan_in);
    weight_scales.scales.push_back(scale);
    weight_scales.zero_points.push_back(0);
    bias_scales.scales.push_back(scale * 0.02F);
    bias_scales.zero_points.push_back(0);
  }
  const auto weights = graph.add_tensor({.name = "w",
                                         .dtype = DType::i8,
                                         .shape = weight_shape,
                                         .quantization = weight_scales,
                                         .data = random_whole<std::int8_t>(count, -127, 127, 1)});
  const auto bias = graph.add_tensor(
      {.name = "b",
       .dtype = DType::i32,
       .shape = graph::Shape{shape.out},
       .quantization = bias_scales,
       .data = random_whole<std::int32_t>(static_cast<std::size_t>(shape.out), -2000, 2000, 2)});
  const auto output = graph.add_tensor({.name = "y",
                                        .dtype = quantities.out,
                                        .quantization = one_scale(0.025F, quantities.out_zero)});
  const std::int64_t pad = shape.kernel / 2;
  graph::Conv conv{.window = {.kernel = {shape.kernel, shape.kernel},
                              .strides = {shape.stride, shape.stride},
                              .dilations = {1, 1},
                              .pads_begin = {pad, pad},
                              .pads_end = {pad, pad}},
                   .groups = shape.groups,
                   .layout = graph::Layout::nhwc};
  graph.nodes.push_back({.name = "conv",
                         .op = conv,
                         .inputs = {input, weights, bias},
                         .outputs = {output},
                         .activation = activation});
  graph.inputs = {input};
  graph.outputs = {output};
  EXPECT_TRUE(infer_shapes(graph));
  return graph;
}

/// The largest difference in quanta.
int worst_difference(const graph::Value& a, const graph::Value& b) {
  const auto left = a.data.as<std::uint8_t>();
  const auto right = b.data.as<std::uint8_t>();
  int worst = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool is_signed = a.dtype == DType::i8;
    const int first = is_signed ? static_cast<std::int8_t>(left[i]) : left[i];
    const int second = is_signed ? static_cast<std::int8_t>(right[i]) : right[i];
    worst = std::max(worst, std::abs(first - second));
  }
  return worst;
}

using Parameters = std::tuple<ConvCase, Activation>;
class QuantizedConvolution : public testing::TestWithParam<Parameters> {};

TEST_P(QuantizedConvolution, IsWithinOneQuantumOfTheInterpreter) {
  const auto& [shape, activation] = GetParam();
  for (const Quantities& quantities :
       {Quantities{}, Quantities{.in_zero = 3, .out_zero = 120},
        Quantities{.in_zero = 128, .out_zero = 0}, Quantities{DType::i8, 0, DType::i8, -128},
        Quantities{DType::i8, -5, DType::u8, 7}}) {
    const Graph graph = quantized_conv(shape, activation, quantities);
    auto inputs = graph::random_inputs(graph, 3);
    inputs[0].data = random_whole<std::uint8_t>(inputs[0].data.size_bytes(), 0, 255, 4);
    const auto expected = graph::evaluate(graph, inputs).value();
    for (const Library library : {Library::automatic, Library::onednn}) {
      const auto actual =
          run_on_engine(graph, inputs, {.library = library, .choosing = Choosing::fixed});
      ASSERT_TRUE(actual) << actual.error().message;
      EXPECT_LE(worst_difference(expected[0], (*actual)[0]), 1)
          << shape.name << " " << graph::type_name(activation.kind) << " zero points "
          << quantities.in_zero << " " << quantities.out_zero
          << (quantities.in == DType::i8 ? " signed" : "");
    }
  }
}

std::string name_of(const testing::TestParamInfo<Parameters>& test) {
  const auto& [shape, activation] = test.param;
  return shape.name + std::string(activation ? graph::type_name(activation.kind) : "None");
}

INSTANTIATE_TEST_SUITE_P(
    Engine, QuantizedConvolution,
    testing::Combine(
        testing::Values(
            ConvCase{"pointwise", 24, 40, 1, 1, 1}, ConvCase{"dense3x3", 16, 24, 3, 2, 1},
            ConvCase{"first", 3, 16, 3, 2, 1}, ConvCase{"depthwise3", 40, 40, 3, 1, 40},
            ConvCase{"depthwise5", 24, 24, 5, 2, 24}, ConvCase{"odd", 58, 58, 1, 1, 1},
            ConvCase{"depthwise58", 58, 58, 3, 2, 58}, ConvCase{"grouped", 32, 32, 3, 1, 4},
            ConvCase{"unevenGroups", 96, 72, 3, 1, 8}, ConvCase{"oddGroups", 60, 45, 5, 2, 5},
            ConvCase{"manyOddGroups", 76, 57, 3, 1, 19},
            ConvCase{"nearlyTwoBlocks", 126, 64, 9, 2, 1}),
        testing::Values(Activation{}, graph::kRelu, graph::kRelu6, graph::kHardSwish, graph::kSilu,
                        graph::kSigmoid, graph::kHardSigmoid,
                        Activation{graph::ActivationKind::leaky_relu, 0.1F})),
    name_of);

}  // namespace
}  // namespace fleetfit::engine
