#include <flatbuffers/flexbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "fleetfit/graph/import.h"
#include "tests/graph/tflite_writer.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tflite::TfliteWriter;
using Code = tflite::file::BuiltinOperator;
using Type = tflite::file::TensorType;
namespace file = tflite::file;

constexpr auto kSame = file::Padding::SAME;
constexpr auto kValid = file::Padding::VALID;

Graph graph_of(const std::vector<std::byte>& bytes, const ImportOptions& options = {}) {
  auto model = import_tflite(bytes, options);
  EXPECT_TRUE(model.has_value()) << model.error().message;
  return model ? std::move(model->graph) : Graph{};
}

std::string error_of(const std::vector<std::byte>& bytes) {
  const auto model = import_tflite(bytes);
  return model ? "read" : model.error().message;
}

template <class Op>
const Op& op_of(const Graph& graph, std::size_t node) {
  return std::get<Op>(graph.nodes.at(node).op);
}

Ints ints_of(const Graph& graph, TensorId id) { return constant_ints(graph, id).value(); }

/// A file with one operator from a float tensor x to y; more inputs follow x.
struct OneOperator {
  TfliteWriter writer;
  int x = 0;
  int y = 0;

  OneOperator(std::vector<int> x_shape, std::vector<int> y_shape)
      : x(writer.tensor({.name = "x", .shape = std::move(x_shape)})),
        y(writer.tensor({.name = "y", .shape = std::move(y_shape)})) {}

  int weights(std::vector<int> shape) {
    std::size_t count = 1;
    for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
    return writer.tensor({.name = "w", .shape = shape, .data = TfliteWriter::bytes_of(values)});
  }

  template <class Options = void>
  std::vector<std::byte> with(Code code, std::vector<int> more_inputs = {},
                              flatbuffers::Offset<Options> options = {}) {
    more_inputs.insert(more_inputs.begin(), x);
    writer.op(code, more_inputs, {y}, options);
    return writer.finish({x}, {y});
  }
};

TEST(TfliteImport, ReadsConvolutionWithFusedActivation) {
  OneOperator one({1, 9, 7, 3}, {1, 5, 4, 8});
  const auto weights = one.weights({8, 3, 5, 3});
  const auto bias = one.weights({8});
  const auto graph = graph_of(
      one.with(Code::CONV_2D, {weights, bias},
               file::CreateConv2DOptions(one.writer.builder(), kSame, /*stride_w=*/2,
                                         /*stride_h=*/2, file::ActivationFunctionType::RELU6)));

  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].name, "y");
  EXPECT_EQ(graph.nodes[0].activation, kRelu6);
  EXPECT_THAT(graph.nodes[0].inputs, ElementsAre(one.x, weights, bias));
  const auto& conv = op_of<Conv>(graph, 0);
  EXPECT_EQ(conv.layout, Layout::nhwc);
  EXPECT_THAT(conv.window.kernel, ElementsAre(3, 5));
  EXPECT_THAT(conv.window.strides, ElementsAre(2, 2));
  EXPECT_EQ(conv.window.auto_pad, AutoPad::same_upper);
  EXPECT_EQ(conv.groups, 1);
  EXPECT_EQ(graph.tensor(one.y).shape, (Shape{1, 5, 4, 8}));
}

TEST(TfliteImport, TakesAnOptionalInputLeftOut) {
  OneOperator one({2, 4}, {2, 3});
  const auto weights = one.weights({3, 4});
  const auto graph = graph_of(one.with(Code::FULLY_CONNECTED, {weights, -1},
                                       file::CreateFullyConnectedOptions(one.writer.builder())));

  EXPECT_THAT(graph.nodes[0].inputs, ElementsAre(one.x, weights));
  EXPECT_TRUE(op_of<Gemm>(graph, 0).trans_b);
  EXPECT_FALSE(op_of<Gemm>(graph, 0).keep_leading);
}

TEST(TfliteImport, RefusesARequiredInputLeftOut) {
  OneOperator one({2, 4}, {2, 3});
  EXPECT_THAT(error_of(one.with(Code::FULLY_CONNECTED, {-1})), HasSubstr("operator 0"));
}

TEST(TfliteImport, TransposesDepthwiseWeightsAndTheirQuantization) {
  TfliteWriter writer;
  const auto x = writer.tensor({.name = "x",
                                .type = Type::INT8,
                                .shape = {{1, 4, 4, 2}},
                                .scales = {0.5F},
                                .zero_points = {-3}});
  const auto w = writer.tensor({.name = "w",
                                .type = Type::INT8,
                                .shape = {{1, 1, 3, 2}},
                                .scales = {0.25F, 0.125F},
                                .zero_points = {0, 0},
                                .axis = 3,
                                .data = {1, 2, 3, 4, 5, 6}});
  const auto bias = writer.tensor({.name = "b",
                                   .type = Type::INT32,
                                   .shape = {{2}},
                                   .scales = {0.125F, 0.0625F},
                                   .zero_points = {0, 0},
                                   .axis = 3,  // as files of some converters have it
                                   .data = std::vector<std::uint8_t>(8)});
  const auto y =
      writer.tensor({.name = "y", .type = Type::INT8, .shape = {{1, 4, 2, 2}}, .scales = {1}});
  writer.op(Code::DEPTHWISE_CONV_2D, {x, w, bias}, {y},
            file::CreateDepthwiseConv2DOptions(writer.builder(), kValid, 1, 1, 1));
  const auto graph = graph_of(writer.finish({x}, {y}));

  EXPECT_EQ(op_of<Conv>(graph, 0).groups, 2);
  const auto& weights = graph.tensor(graph.nodes[0].inputs[1]);
  EXPECT_EQ(weights.shape, (Shape{2, 1, 3, 1}));
  EXPECT_THAT(weights.data->as<std::int8_t>(), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_EQ(weights.quantization, (Quantization{{0.25F, 0.125F}, {0, 0}, 0}));
  EXPECT_EQ(graph.tensor(bias).quantization->axis, 0);
  EXPECT_EQ(graph.tensor(x).dtype, DType::i8);
  EXPECT_EQ(graph.tensor(x).quantization, (Quantization{{0.5F}, {-3}, std::nullopt}));
}

TEST(TfliteImport, TransposesDepthwiseWeightsBelowTheirConversionFromFloat16) {
  OneOperator one({1, 4, 4, 2}, {1, 4, 3, 2});
  auto& writer = one.writer;
  const auto half = writer.tensor({.name = "half",
                                   .type = Type::FLOAT16,
                                   .shape = {{1, 1, 2, 2}},
                                   .data = TfliteWriter::bytes_of<std::uint16_t>({1, 2, 3, 4})});
  const auto w = writer.tensor({.name = "w", .shape = {{1, 1, 2, 2}}});
  writer.op(Code::DEQUANTIZE, {half}, {w});
  const auto graph =
      graph_of(one.with(Code::DEPTHWISE_CONV_2D, {w},
                        file::CreateDepthwiseConv2DOptions(writer.builder(), kValid, 1, 1)));

  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(op_of<Cast>(graph, 0).to, DType::f32);
  const auto& constant = graph.tensor(graph.nodes[0].inputs[0]);
  EXPECT_THAT(constant.data->as<std::uint16_t>(), ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(graph.tensor(w).shape, (Shape{2, 1, 2, 1}));
  EXPECT_EQ(graph.tensor(one.y).shape, (Shape{1, 4, 3, 2}));
}

TEST(TfliteImport, KeepsWeightsThatAnotherOperatorReadsAsWell) {
  OneOperator one({1, 4, 4, 2}, {1, 4, 3, 2});
  auto& writer = one.writer;
  const auto w = one.weights({1, 1, 2, 2});
  const auto z = writer.tensor({.name = "z", .shape = {{1, 1, 2, 2}}});
  writer.op(Code::ABS, {w}, {z});
  const auto graph =
      graph_of(one.with(Code::DEPTHWISE_CONV_2D, {w},
                        file::CreateDepthwiseConv2DOptions(writer.builder(), kValid, 1, 1)));

  EXPECT_THAT(graph.tensor(w).data->as<float>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(graph.tensor(graph.nodes[1].inputs[1]).data->as<float>(), ElementsAre(0, 2, 1, 3));
}

TEST(TfliteImport, TransposesComputedDepthwiseWeightsWithANode) {
  OneOperator one({1, 4, 4, 2}, {1, 4, 3, 2});
  const auto w = one.writer.tensor({.name = "w", .shape = {{1, 1, 2, 2}}});
  one.writer.op(Code::DEPTHWISE_CONV_2D, {one.x, w}, {one.y},
                file::CreateDepthwiseConv2DOptions(one.writer.builder(), kValid, 1, 1));
  const auto graph = graph_of(one.writer.finish({one.x, w}, {one.y}));

  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_THAT(op_of<Transpose>(graph, 0).perm, ElementsAre(3, 1, 2, 0));
  EXPECT_EQ(graph.tensor(graph.nodes[1].inputs[1]).shape, (Shape{2, 1, 2, 1}));
}

TEST(TfliteImport, RefusesDepthwiseWeightsOfText) {
  OneOperator one({1, 4, 4, 2}, {1, 4, 3, 2});
  const auto w = one.writer.tensor(
      {.name = "w", .type = Type::STRING, .shape = {{1, 1, 2, 2}}, .data = {1, 2, 3, 4}});
  EXPECT_THAT(
      error_of(one.with(Code::DEPTHWISE_CONV_2D, {w},
                        file::CreateDepthwiseConv2DOptions(one.writer.builder(), kValid, 1, 1))),
      HasSubstr("no numbers"));
}

TEST(TfliteImport, GivesOpenDimensionsAnExtentAndSaysSo) {
  const auto file = [] {
    TfliteWriter writer;
    const auto x =
        writer.tensor({.name = "image", .shape = {{1, 1, 8, 3}}, .signature = {-1, -1, 8, 3}});
    const auto y =
        writer.tensor({.name = "y", .shape = {{1, 1, 8, 3}}, .signature = {-1, -1, 8, 3}});
    writer.op(Code::RELU, {x}, {y});
    return writer.finish({x}, {y});
  }();
  const auto model = import_tflite(file, {.dimensions = {{"N", 5}}, .open_extent = 32}).value();

  EXPECT_EQ(model.graph.tensor(0).shape, (Shape{5, 32, 8, 3}));
  EXPECT_THAT(model.graph.tensor(0).symbols, ElementsAre("N", "dim1", "", ""));
  EXPECT_EQ(model.graph.tensor(1).shape, (Shape{5, 32, 8, 3}));
  ASSERT_EQ(model.assumed.size(), 1U);  // the batch was given
  EXPECT_EQ(model.assumed[0].input, "image");
  EXPECT_EQ(model.assumed[0].name, "dim1");
  EXPECT_EQ(model.assumed[0].extent, 32);
}

TEST(TfliteImport, TakesANullShapeAsAScalar) {
  TfliteWriter writer;
  const auto x = writer.tensor({.name = "x"});
  const auto c = writer.tensor({.name = "c", .data = TfliteWriter::bytes_of<float>({2})});
  const auto y = writer.tensor({.name = "y"});
  writer.op(Code::MUL, {x, c}, {y});
  const auto graph = graph_of(writer.finish({x}, {y}));

  EXPECT_EQ(graph.tensor(x).shape, Shape{});
  EXPECT_EQ(graph.tensor(c).shape, Shape{});
  EXPECT_EQ(graph.tensor(y).shape, Shape{});
}

TEST(TfliteImport, ReadsStridedSliceWithMasks) {
  OneOperator one({4, 10, 6, 3}, {10, 3, 3});
  const auto begin = one.writer.ints({-1, 5, 5, 1});
  const auto end = one.writer.ints({0, 9, 0, 2});
  const auto strides = one.writer.ints({1, 1, -2, 1});
  // Dimension 0 is dropped, 1 and the end of 2 and of 3 are left open.
  const auto graph = graph_of(one.with(
      Code::STRIDED_SLICE, {begin, end, strides},
      file::CreateStridedSliceOptions(one.writer.builder(), /*begin_mask=*/0b1010,
                                      /*end_mask=*/0b1110, 0, 0, /*shrink_axis_mask=*/0b0001)));

  constexpr auto kEnd = std::numeric_limits<std::int64_t>::max();
  constexpr auto kStart = std::numeric_limits<std::int64_t>::min();
  const auto& inputs = graph.nodes[0].inputs;
  EXPECT_THAT(op_of<Slice>(graph, 0).squeezed, ElementsAre(0));
  EXPECT_THAT(ints_of(graph, inputs[1]), ElementsAre(-1, 0, 5, 0));
  EXPECT_THAT(ints_of(graph, inputs[2]), ElementsAre(kEnd, kEnd, kStart, kEnd));
  EXPECT_THAT(ints_of(graph, inputs[3]), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ints_of(graph, inputs[4]), ElementsAre(1, 1, -2, 1));
  EXPECT_EQ(graph.tensor(one.y).shape, (Shape{10, 3, 3}));
}

TEST(TfliteImport, KeepsAStridedSliceWithAnEllipsisAsUnknown) {
  OneOperator one({4, 10}, {4, 5});
  const auto list = one.writer.ints({1, 1});
  const auto graph = graph_of(
      one.with(Code::STRIDED_SLICE, {list, list, list},
               file::CreateStridedSliceOptions(one.writer.builder(), 0, 0, /*ellipsis_mask=*/1)));

  const auto& unknown = op_of<Unknown>(graph, 0);
  EXPECT_EQ(unknown.type, "STRIDED_SLICE");
  EXPECT_THAT(unknown.reason, HasSubstr("ellipsis"));
  EXPECT_EQ(unknown.attributes.at("ellipsis_mask"), Attribute{std::int64_t{1}});
  EXPECT_EQ(graph.nodes[0].inputs.size(), 4U);
  EXPECT_EQ(graph.tensor(one.y).shape, (Shape{4, 5}));
}

TEST(TfliteImport, PutsPadsInTheOrderOfTheGraph) {
  OneOperator one({1, 4, 4, 3}, {1, 7, 9, 3});
  const auto pads = one.writer.ints({0, 0, 1, 2, 4, 1, 0, 0});
  const auto graph = graph_of(one.with(Code::PAD, {pads}));

  EXPECT_THAT(ints_of(graph, graph.nodes[0].inputs[1]), ElementsAre(0, 1, 4, 0, 0, 2, 1, 0));
  EXPECT_EQ(graph.tensor(one.y).shape, (Shape{1, 7, 9, 3}));
}

TEST(TfliteImport, ReadsResizeWithAllFourExtents) {
  OneOperator one({2, 4, 4, 3}, {2, 9, 11, 3});
  const auto size = one.writer.ints({9, 11});
  const auto graph = graph_of(
      one.with(Code::RESIZE_NEAREST_NEIGHBOR, {size},
               file::CreateResizeNearestNeighborOptions(one.writer.builder(), false, true)));

  const auto& resize = op_of<Resize>(graph, 0);
  EXPECT_EQ(resize.coordinates, CoordinateMode::half_pixel);
  EXPECT_EQ(resize.nearest, NearestMode::round_prefer_ceil);
  EXPECT_THAT(ints_of(graph, graph.nodes[0].inputs[3]), ElementsAre(2, 9, 11, 3));
}

TEST(TfliteImport, ReadsTransposedConvolution) {
  TfliteWriter writer;
  const auto shape = writer.ints({1, 9, 8, 5});
  const auto w = writer.tensor(
      {.name = "w", .shape = {{5, 3, 2, 4}}, .data = std::vector<std::uint8_t>(5 * 3 * 2 * 4 * 4)});
  const auto x = writer.tensor({.name = "x", .shape = {{1, 4, 4, 4}}});
  const auto y = writer.tensor({.name = "y", .shape = {{1, 9, 8, 5}}});
  writer.op(Code::TRANSPOSE_CONV, {shape, w, x}, {y},
            file::CreateTransposeConvOptions(writer.builder(), kValid, 2, 2));
  const auto graph = graph_of(writer.finish({x}, {y}));

  EXPECT_THAT(graph.nodes[0].inputs, ElementsAre(x, w));
  EXPECT_THAT(op_of<ConvTranspose>(graph, 0).output_shape, ElementsAre(9, 8));
  EXPECT_EQ(graph.tensor(y).shape, (Shape{1, 9, 8, 5}));
}

TEST(TfliteImport, ReadsTheTransposedConvolutionOfMediapipe) {
  OneOperator one({1, 4, 4, 2}, {1, 8, 12, 1});
  const auto weights = one.weights({1, 2, 2, 2});
  one.writer.custom_op(
      "Convolution2DTransposeBias", {one.x, weights}, {one.y},
      TfliteWriter::bytes_of<std::int32_t>({/*same*/ 1, /*width*/ 3, /*height*/ 2}));
  const auto graph = graph_of(one.writer.finish({one.x}, {one.y}));

  EXPECT_THAT(op_of<ConvTranspose>(graph, 0).window.strides, ElementsAre(2, 3));
  EXPECT_EQ(graph.tensor(one.y).shape, (Shape{1, 8, 12, 1}));
}

TEST(TfliteImport, ScalesAlphaOfLocalResponseNormalizationByTheSize) {
  OneOperator one({1, 4, 4, 8}, {1, 4, 4, 8});
  const auto graph = graph_of(one.with(
      Code::LOCAL_RESPONSE_NORMALIZATION, {},
      file::CreateLocalResponseNormalizationOptions(one.writer.builder(), 2, 1.0F, 0.5F, 0.75F)));

  EXPECT_EQ(
      Operator(op_of<Lrn>(graph, 0)),
      Operator(Lrn{.size = 5, .alpha = 2.5F, .beta = 0.75F, .bias = 1, .layout = Layout::nhwc}));
}

TEST(TfliteImport, ReadsReductionsOverConstantAxesOnly) {
  const auto file = [](bool constant) {
    OneOperator one({1, 4, 4, 8}, {1, 8});
    const auto axes =
        constant ? one.writer.ints({1, 2})
                 : one.writer.tensor({.name = "axes", .type = Type::INT32, .shape = {{2}}});
    one.writer.op(Code::MEAN, {one.x, axes}, {one.y});
    return one.writer.finish(constant ? std::vector{one.x} : std::vector{one.x, axes}, {one.y});
  };
  const auto graph = graph_of(file(true));
  EXPECT_EQ(Operator(op_of<Reduce>(graph, 0)), Operator(Reduce{ReduceKind::mean, {1, 2}, false}));
  EXPECT_EQ(graph.tensor(1).shape, (Shape{1, 8}));

  const auto open = graph_of(file(false));
  EXPECT_THAT(op_of<Unknown>(open, 0).reason, HasSubstr("axes"));
}

TEST(TfliteImport, ResolvesTheRestOfASplit) {
  OneOperator one({1, 10}, {1, 3});
  const auto z = one.writer.tensor({.name = "z", .shape = {{1, 7}}});
  const auto sizes = one.writer.ints({3, -1});
  const auto axis = one.writer.ints({1});
  one.writer.op(Code::SPLIT_V, {one.x, sizes, axis}, {one.y, z});
  const auto graph = graph_of(one.writer.finish({one.x}, {one.y, z}));

  EXPECT_THAT(ints_of(graph, graph.nodes[0].inputs[1]), ElementsAre(3, 7));
  EXPECT_EQ(graph.tensor(z).shape, (Shape{1, 7}));
}

TEST(TfliteImport, TakesTheNewShapeFromTheOptionsIfThereIsNoInput) {
  OneOperator one({2, 6}, {3, 4});
  auto& builder = one.writer.builder();
  const std::vector<int> shape{3, -1};
  const auto graph = graph_of(one.with(
      Code::RESHAPE, {}, file::CreateReshapeOptions(builder, builder.CreateVector(shape))));

  EXPECT_THAT(ints_of(graph, graph.nodes[0].inputs[1]), ElementsAre(3, -1));
  EXPECT_EQ(graph.tensor(one.y).shape, (Shape{3, 4}));
}

TEST(TfliteImport, KeepsCustomOperatorsWithTheirOptions) {
  OneOperator one({1, 4}, {1, 2});
  flexbuffers::Builder options;
  options.Map([&] {
    options.Int("classes", 90);
    options.Double("threshold", 0.5);
    options.String("mode", "fast");
  });
  options.Finish();
  one.writer.custom_op("Detect", {one.x}, {one.y}, options.GetBuffer());
  const auto graph = graph_of(one.writer.finish({one.x}, {one.y}));

  const auto& unknown = op_of<Unknown>(graph, 0);
  EXPECT_EQ(unknown.domain, "custom");
  EXPECT_EQ(unknown.type, "Detect");
  EXPECT_EQ(unknown.attributes.at("classes"), Attribute{std::int64_t{90}});
  EXPECT_EQ(unknown.attributes.at("threshold"), Attribute{0.5});
  EXPECT_EQ(unknown.attributes.at("mode"), Attribute{std::string("fast")});
  EXPECT_FALSE(unknown.reason.empty());
}

TEST(TfliteImport, ReadsOptionsOfOldFilesAsAttributesOnlyInsideOfTheFile) {
  // An old field at the very end of a file must not be read beyond it: each byte is broken in turn.
  OneOperator one({2, 4, 4, 3}, {2, 9, 11, 3});
  const auto size = one.writer.tensor({.name = "size", .type = Type::INT32, .shape = {{2}}});
  one.writer.op(Code::RESIZE_BILINEAR, {one.x, size}, {one.y},
                file::CreateResizeBilinearOptions(one.writer.builder(), /*new_height=*/7));
  auto bytes = one.writer.finish({one.x, size}, {one.y});
  EXPECT_EQ(op_of<Unknown>(graph_of(bytes), 0).attributes.at("new_height"),
            Attribute{std::int64_t{7}});
  for (auto& byte : bytes) {
    const auto whole = byte;
    byte = std::byte{0xFF};
    import_tflite(bytes);
    byte = whole;
  }
}

TEST(TfliteImport, CountsTheBytesOfCustomOptionsThatAreNoMap) {
  OneOperator one({1, 4}, {1, 2});
  one.writer.custom_op("Odd", {one.x}, {one.y}, std::vector<std::uint8_t>(20, 0xFF));
  const auto graph = graph_of(one.writer.finish({one.x}, {one.y}));

  EXPECT_EQ(op_of<Unknown>(graph, 0).attributes.at("custom_options_bytes"),
            Attribute{std::int64_t{20}});
}

TEST(TfliteImport, KeepsOperatorsOnStateWithoutTheirState) {
  OneOperator one({1, 4}, {1, 2});
  const auto state = one.writer.tensor({.name = "state", .shape = {{1, 8}}, .is_variable = true});
  const auto graph =
      graph_of(one.with(Code::SVDF, {state}, file::CreateSVDFOptions(one.writer.builder(), 2)));

  EXPECT_THAT(graph.nodes[0].inputs, ElementsAre(one.x, kNoTensor));
  EXPECT_EQ(op_of<Unknown>(graph, 0).type, "SVDF");
  EXPECT_EQ(op_of<Unknown>(graph, 0).attributes.at("rank"), Attribute{std::int64_t{2}});
}

TEST(TfliteImport, SaysThatAnOperatorRunsAnotherGraph) {
  OneOperator one({1, 4}, {1, 2});
  const auto graph =
      graph_of(one.with(Code::WHILE, {}, file::CreateWhileOptions(one.writer.builder(), 1, 2)));

  EXPECT_EQ(op_of<Unknown>(graph, 0).type, "WHILE");
  EXPECT_THAT(op_of<Unknown>(graph, 0).reason, HasSubstr("another graph"));
}

TEST(TfliteImport, NamesOperatorsOfTheFuture) {
  OneOperator one({1, 4}, {1, 2});
  const auto graph = graph_of(one.with(static_cast<Code>(1000)));
  EXPECT_EQ(op_of<Unknown>(graph, 0).type, "BUILTIN_1000");
}

TEST(TfliteImport, ReadsOperatorsWithCodesAbove127) {
  OneOperator one({1, 4}, {3, 4});
  const auto shape = one.writer.ints({3, 4});
  const auto graph = graph_of(one.with(Code::BROADCAST_TO, {shape}));
  EXPECT_TRUE(std::holds_alternative<Expand>(graph.nodes[0].op));
}

TEST(TfliteImport, UnpacksFourBitNumbers) {
  TfliteWriter writer;
  const auto x = writer.tensor({.name = "x", .type = Type::INT8, .shape = {{3}}});
  const auto c =
      writer.tensor({.name = "c", .type = Type::INT4, .shape = {{3}}, .data = {0xF7, 0x08}});
  const auto y = writer.tensor({.name = "y", .type = Type::INT8, .shape = {{3}}});
  writer.op(Code::ADD, {x, c}, {y});
  const auto graph = graph_of(writer.finish({x}, {y}));

  EXPECT_THAT(graph.tensor(c).data->as<std::int8_t>(), ElementsAre(7, -1, -8));
}

TEST(TfliteImport, NeedsNoDataForTensorsWithoutElements) {
  OneOperator one({1}, {});
  const auto empty = one.writer.tensor({.name = "shape", .type = Type::INT32, .shape = {{0}}});
  const auto graph = graph_of(one.with(Code::RESHAPE, {empty}));
  EXPECT_EQ(graph.tensor(one.y).shape, Shape{});
}

TEST(TfliteImport, DropsQuantizationWithoutScales) {
  TfliteWriter writer;
  const auto x =
      writer.tensor({.name = "x", .type = Type::UINT8, .shape = {{3}}, .zero_points = {1}});
  const auto y = writer.tensor({.name = "y", .type = Type::UINT8, .shape = {{3}}});
  writer.op(Code::RELU, {x}, {y});
  EXPECT_FALSE(graph_of(writer.finish({x}, {y})).tensor(x).quantization);
}

/// What the importer says about a graph with this constant in it.
std::string error_with(const TfliteWriter::TensorSpec& constant) {
  OneOperator one({3}, {3});
  const auto c = one.writer.tensor(constant);
  return error_of(one.with(Code::ADD, {c}));
}

TEST(TfliteImport, RefusesTensorsThatContradictThemselves) {
  const std::vector<std::uint8_t> three{1, 2, 3};
  EXPECT_EQ(error_with({.name = "c", .type = Type::INT8, .shape = {{3}}, .data = three}), "read");
  EXPECT_THAT(error_with({.name = "c", .type = Type::INT8, .shape = {{4}}, .data = three}),
              HasSubstr("'c'"));
  EXPECT_THAT(error_with({.name = "c", .type = Type::INT8, .shape = {{-3}}, .data = three}),
              HasSubstr("negative"));
  EXPECT_THAT(error_with({.name = "c", .shape = {{1 << 30, 1 << 30, 1 << 30}}}),
              HasSubstr("absurdly large"));
  EXPECT_THAT(error_with({.name = "c", .shape = {{3}}, .buffer = 77}), HasSubstr("buffer 77"));
  EXPECT_THAT(
      error_with(
          {.name = "c", .type = Type::INT8, .shape = {{3}}, .scales = {1, 2}, .data = three}),
      HasSubstr("2 scales"));
  EXPECT_THAT(
      error_with({.name = "c", .type = Type::INT8, .shape = {{3}}, .scales = {0}, .data = three}),
      HasSubstr("scale"));
  EXPECT_THAT(error_with({.name = "c",
                          .type = Type::INT8,
                          .shape = {{3}},
                          .scales = {1},
                          .zero_points = {1, 2},
                          .data = three}),
              HasSubstr("zero points"));
  EXPECT_THAT(
      error_with(
          {.name = "c", .type = Type::INT8, .shape = {{3}}, .data = three, .is_sparse = true}),
      HasSubstr("sparse"));
}

TEST(TfliteImport, RefusesIndicesOutOfRange) {
  for (const int index : {-2, 3, 1 << 30}) {
    OneOperator input({3}, {3});
    EXPECT_THAT(error_of(input.with(Code::ADD, {index})), HasSubstr("no tensor")) << index;
    OneOperator output({3}, {3});
    output.writer.op(Code::RELU, {output.x}, {index});
    EXPECT_THAT(error_of(output.writer.finish({output.x}, {output.y})), HasSubstr("no tensor"))
        << index;
    OneOperator graph_input({3}, {3});
    EXPECT_THAT(error_of(graph_input.writer.finish({index}, {graph_input.y})),
                HasSubstr("no tensor"));
    OneOperator graph_output({3}, {3});
    EXPECT_THAT(error_of(graph_output.writer.finish({graph_output.x}, {index})),
                HasSubstr("no tensor"));
  }
}

TEST(TfliteImport, RefusesCyclesAndTensorsMadeTwice) {
  OneOperator cycle({3}, {3});
  const auto z = cycle.writer.tensor({.name = "z", .shape = {{3}}});
  cycle.writer.op(Code::RELU, {cycle.y}, {z});
  cycle.writer.op(Code::RELU, {z}, {cycle.y});
  EXPECT_THAT(error_of(cycle.writer.finish({cycle.x}, {z})), HasSubstr("cycle"));

  OneOperator twice({3}, {3});
  twice.writer.op(Code::RELU, {twice.x}, {twice.y});
  EXPECT_THAT(error_of(twice.with(Code::RELU)), HasSubstr("second time"));
}

TEST(TfliteImport, RefusesEveryTruncatedFile) {
  OneOperator one({1, 9, 7, 3}, {1, 5, 4, 8});
  const auto weights = one.weights({8, 3, 5, 3});
  const auto whole = one.with(Code::CONV_2D, {weights},
                              file::CreateConv2DOptions(one.writer.builder(), kSame, 2, 2));
  ASSERT_EQ(error_of(whole), "read");
  // The last bytes of a FlatBuffer may be padding that nothing needs.
  for (std::size_t size = 0; size + 16 < whole.size(); ++size) {
    const auto model = import_tflite(std::span(whole).first(size));
    ASSERT_FALSE(model) << size;
    EXPECT_EQ(model.error().code, ErrorCode::invalid_input);
  }
}

TEST(TfliteImport, ReadsBytesAtAnyAddress) {
  OneOperator one({3}, {3});
  const auto whole = one.with(Code::RELU);
  std::vector<std::byte> shifted(whole.size() + 3);
  std::copy(whole.begin(), whole.end(), shifted.begin() + 3);
  EXPECT_TRUE(import_tflite(std::span(shifted).subspan(3)));
}

TEST(TfliteImport, CopiesSharedBytesOnce) {
  // Ten thousand tensors with one buffer of a megabyte: harmless as long as they share its copy.
  TfliteWriter writer;
  const auto x = writer.tensor({.name = "x", .type = Type::INT8, .shape = {{1 << 20}}});
  const auto c = writer.tensor({.name = "c",
                                .type = Type::INT8,
                                .shape = {{1 << 20}},
                                .data = std::vector<std::uint8_t>(1 << 20)});
  const auto y = writer.tensor({.name = "y", .type = Type::INT8, .shape = {{1 << 20}}});
  int last = 0;
  for (int i = 0; i < 10'000; ++i)
    last = writer.tensor({.name = "c", .type = Type::INT8, .shape = {{1 << 20}}, .buffer = 1});
  writer.op(Code::ADD, {x, last}, {y});
  const auto graph = graph_of(writer.finish({x}, {y}));
  EXPECT_EQ(graph.tensor(c).data->bytes().data(), graph.tensor(last).data->bytes().data());
}

TEST(TfliteImport, RefusesFilesThatGrowWhenTheyAreRead) {
  // A few hundred kilobytes that ask for 720 MB of names.
  OneOperator names({3}, {3});
  names.writer.tensor({.name = std::string(9'000, 'n'), .shape = {{3}}});
  names.writer.repeat_tensor(80'000);
  EXPECT_THAT(error_of(names.with(Code::RELU)), HasSubstr("again and again"));

  OneOperator tensors({3}, {3});
  tensors.writer.repeat_tensor(200'000);
  EXPECT_THAT(error_of(tensors.with(Code::RELU)), HasSubstr("200002"));

  // Depthwise weights of 64 kB, transposed anew for each of a thousand tensors.
  OneOperator weights({1, 8, 8, 16}, {1, 8, 8, 16});
  auto& writer = weights.writer;
  const auto first = weights.weights({1, 32, 32, 16});
  for (int i = 0; i < 1000; ++i) {
    const auto w = writer.tensor({.name = "w", .shape = {{1, 32, 32, 16}}, .buffer = 1});
    const auto y = writer.tensor({.name = "y", .shape = {{1, 8, 8, 16}}});
    writer.op(Code::DEPTHWISE_CONV_2D, {weights.x, w}, {y},
              file::CreateDepthwiseConv2DOptions(writer.builder(), kSame, 1, 1));
  }
  EXPECT_THAT(error_of(weights.with(Code::ADD, {first})), HasSubstr("again and again"));
}

}  // namespace
}  // namespace fleetfit::graph
