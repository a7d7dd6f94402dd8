#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/import.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

/// A file of these layers; the counts at its head are right.
std::string file_of(const std::vector<std::string>& layers) {
  std::string text = "7767517\n" + std::to_string(layers.size()) + " 99\n";
  for (const auto& layer : layers) text += layer + "\n";
  return text;
}

Graph import(const std::vector<std::string>& layers, const ImportOptions& options = {}) {
  auto model = import_ncnn(file_of(layers), options);
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
  return model ? model->graph : Graph{};
}

std::string error_of(const std::string& text, const ImportOptions& options = {}) {
  const auto model = import_ncnn(text, options);
  EXPECT_FALSE(model.has_value());
  return model ? "" : model.error().message;
}

std::string error_in(const std::vector<std::string>& layers) { return error_of(file_of(layers)); }

const Node& node(const Graph& graph, std::string_view name) {
  static const Node none;
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const Node& n) { return n.name == name; });
  EXPECT_NE(found, graph.nodes.end()) << name;
  return found == graph.nodes.end() ? none : *found;
}

template <class Op>
Op op(const Graph& graph, std::string_view name) {
  const auto* found = std::get_if<Op>(&node(graph, name).op);
  EXPECT_NE(found, nullptr) << type_name(node(graph, name).op);
  return found ? *found : Op{};
}

Shape shape(const Graph& graph, std::string_view tensor) {
  for (const auto& t : graph.tensors) {
    if (t.name == tensor) return t.shape.value_or(Shape{});
  }
  ADD_FAILURE() << "no tensor " << tensor;
  return {};
}

const Tensor& input_of(const Graph& graph, std::string_view name, std::size_t i) {
  return graph.tensor(node(graph, name).inputs.at(i));
}

constexpr const char* kImage = "Input x 0 1 x 0=8 1=6 2=3";

TEST(NcnnImport, GivesImagesABatchOfOneAndWidthLast) {
  const auto graph = import({kImage, "ReLU r 1 1 x y"});

  EXPECT_EQ(shape(graph, "x"), (Shape{1, 3, 6, 8}));
  EXPECT_THAT(graph.tensor(graph.inputs[0]).symbols, IsEmpty());
  EXPECT_EQ(graph.tensor(graph.outputs[0]).name, "y");
  EXPECT_EQ(op<Activate>(graph, "r").function, kRelu);
}

TEST(NcnnImport, ReadsConvolutionWithHeightAfterWidth) {
  const auto graph =
      import({kImage,
              "Convolution c 1 1 x y 0=4 1=5 11=3 2=1 12=2 3=1 13=2 4=2 14=1 15=1 16=0 5=1 6=180"});

  const auto conv = op<Conv>(graph, "c");
  EXPECT_THAT(conv.window.kernel, ElementsAre(3, 5));
  EXPECT_THAT(conv.window.dilations, ElementsAre(2, 1));
  EXPECT_THAT(conv.window.strides, ElementsAre(2, 1));
  EXPECT_THAT(conv.window.pads_begin, ElementsAre(1, 2));
  EXPECT_THAT(conv.window.pads_end, ElementsAre(0, 1));
  // Height: (6 + 1 - (2 * 2 + 1)) / 2 + 1 = 2; width: 8 + 3 - 5 + 1 = 7.
  EXPECT_EQ(shape(graph, "y"), (Shape{1, 4, 2, 7}));
  EXPECT_EQ(*input_of(graph, "c", 1).shape, (Shape{4, 3, 3, 5}));
  EXPECT_EQ(*input_of(graph, "c", 2).shape, (Shape{4}));
}

TEST(NcnnImport, ReadsSamePaddingOfConvolutions) {
  const auto graph = import({kImage, "Convolution a 1 1 x y 0=2 1=3 3=2 4=-233 6=54",
                             "Convolution b 1 1 y z 0=2 1=3 3=2 4=-234 6=36"});

  EXPECT_EQ(op<Conv>(graph, "a").window.auto_pad, AutoPad::same_upper);
  EXPECT_EQ(op<Conv>(graph, "b").window.auto_pad, AutoPad::same_lower);
  EXPECT_EQ(shape(graph, "z"), (Shape{1, 2, 2, 2}));
}

TEST(NcnnImport, PutsFusedActivationsOnTheNode) {
  const auto graph =
      import({kImage, "Convolution a 1 1 x a 0=3 1=1 6=9 9=1",
              "Convolution b 1 1 a b 0=3 1=1 6=9 9=2 -23310=1,0.1",
              "Convolution c 1 1 b c 0=3 1=1 6=9 9=3 -23310=2,0.0,6.0",
              "Convolution d 1 1 c d 0=3 1=1 6=9 9=4", "Convolution e 1 1 d e 0=3 1=1 6=9 9=5",
              "Convolution f 1 1 e f 0=3 1=1 6=9 9=6 -23310=2,1.666667e-01,0.5"});

  EXPECT_EQ(node(graph, "a").activation, kRelu);
  EXPECT_EQ(node(graph, "b").activation, (Activation{ActivationKind::leaky_relu, 0.1F}));
  EXPECT_EQ(node(graph, "c").activation, kRelu6);
  EXPECT_EQ(node(graph, "d").activation, kSigmoid);
  EXPECT_EQ(node(graph, "e").activation.kind, ActivationKind::mish);
  EXPECT_EQ(node(graph, "f").activation, kHardSwish);
}

TEST(NcnnImport, WritesAHardSwishWithAnotherSlopeOut) {
  const auto graph = import({kImage, "HardSwish h 1 1 x y"});

  const auto gate = op<Activate>(graph, "h/gate").function;
  EXPECT_EQ(gate, (Activation{ActivationKind::hard_sigmoid, 0.2F, 0.5F}));
  EXPECT_EQ(op<Elementwise>(graph, "h/gated").kind, ElementwiseKind::mul);
}

TEST(NcnnImport, DrawsWeightsWithTheVarianceThatKeepsActivationsInSize) {
  const auto graph = import({kImage, "Convolution c 1 1 x y 0=64 1=3 4=1 5=1 6=1728"});

  double squares = 0;
  const auto values = input_of(graph, "c", 1).data->as<float>();
  for (const auto value : values) squares += static_cast<double>(value) * value;
  EXPECT_NEAR(squares / static_cast<double>(values.size()), 2.0 / 27, 0.005);
  for (const auto value : input_of(graph, "c", 2).data->as<float>()) EXPECT_EQ(value, 0);
}

TEST(NcnnImport, SeedsWeightsByTheNameOfTheLayer) {
  const auto a = import({kImage, "Convolution c 1 1 x y 0=4 1=1 6=12"});
  const auto b = import({kImage, "ReLU r 1 1 x z", "Convolution c 1 1 z y 0=4 1=1 6=12"});
  const auto other = import({kImage, "Convolution d 1 1 x y 0=4 1=1 6=12"});

  EXPECT_EQ(*input_of(a, "c", 1).data, *input_of(b, "c", 1).data);
  EXPECT_FALSE(*input_of(a, "c", 1).data == *input_of(other, "d", 1).data);
}

TEST(NcnnImport, QuantizesInt8WeightsByChannelAndLeavesTheBiasReal) {
  const auto graph = import({kImage, "ConvolutionDepthWise c 1 1 x y 0=3 1=3 5=1 6=27 7=3 8=101"});

  const auto& weights = input_of(graph, "c", 1);
  EXPECT_EQ(weights.dtype, DType::i8);
  EXPECT_EQ(*weights.shape, (Shape{3, 1, 3, 3}));
  ASSERT_TRUE(weights.quantization.has_value());
  EXPECT_EQ(weights.quantization->axis, 0);
  EXPECT_THAT(weights.quantization->zero_points, ElementsAre(0, 0, 0));
  // 127 stands for sqrt(3) standard deviations of sqrt(2 / 9).
  EXPECT_NEAR(weights.quantization->scales[0] * 127, std::sqrt(3.0) * std::sqrt(2.0 / 9), 1e-5);
  EXPECT_EQ(input_of(graph, "c", 2).dtype, DType::f32);
  EXPECT_EQ(op<Conv>(graph, "c").groups, 3);
}

TEST(NcnnImport, PutsWeightsOfTransposedConvolutionsInputFirst) {
  const auto graph = import(
      {"Input x 0 1 x 0=5 1=5 2=6", "DeconvolutionDepthWise d 1 1 x y 0=4 1=4 3=2 4=1 6=192 7=2"});

  EXPECT_EQ(*input_of(graph, "d", 1).shape, (Shape{6, 2, 4, 4}));
  EXPECT_EQ(shape(graph, "y"), (Shape{1, 4, 10, 10}));
}

TEST(NcnnImport, MakesSplitOtherNamesOfItsInput) {
  const auto graph = import({kImage, "Split s 1 3 x a b c", "ReLU r 1 1 a ra", "Sigmoid t 1 1 b tb",
                             "BinaryOp add 2 1 ra tb y", "BinaryOp mul 2 1 c y z 0=2"});

  EXPECT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(node(graph, "r").inputs[0], graph.inputs[0]);
  EXPECT_EQ(node(graph, "t").inputs[0], graph.inputs[0]);
  EXPECT_EQ(node(graph, "mul").inputs[0], graph.inputs[0]);
  EXPECT_EQ(graph.outputs.size(), 1u);
}

TEST(NcnnImport, MakesWhatANoopReadsResultsOfTheNetwork) {
  const auto graph = import(
      {kImage, "Split s 1 2 x a b", "ReLU r 1 1 a p", "Sigmoid t 1 1 b q", "Noop n 2 1 p q out"});

  EXPECT_THAT(graph.outputs, ElementsAre(node(graph, "r").outputs[0], node(graph, "t").outputs[0]));
}

TEST(NcnnImport, ReadsThePaddingModesOfPooling) {
  const auto graph =
      import({kImage, "Split s 1 4 x a b c d", "Pooling full 1 1 a pa 1=3 2=2",
              "Pooling valid 1 1 b pb 1=3 2=2 5=1", "Pooling upper 1 1 c pc 0=1 1=3 2=2 5=2",
              "Pooling lower 1 1 d pd 0=1 1=3 2=2 5=3 6=1"});

  EXPECT_EQ(shape(graph, "pa"), (Shape{1, 3, 3, 4}));  // ceil((6 - 3) / 2) + 1, ceil(5 / 2) + 1
  EXPECT_EQ(shape(graph, "pb"), (Shape{1, 3, 2, 3}));
  EXPECT_EQ(op<Pool>(graph, "upper").window.auto_pad, AutoPad::same_upper);
  EXPECT_EQ(op<Pool>(graph, "lower").window.auto_pad, AutoPad::same_lower);
  EXPECT_TRUE(op<Pool>(graph, "lower").count_include_pad);
  EXPECT_EQ(op<Pool>(graph, "upper").kind, PoolKind::average);
}

TEST(NcnnImport, ScalesChannelsByAPooledAndDenseGate) {
  const auto graph = import({kImage, "Split s 1 2 x a b", "Pooling g 1 1 a p 0=1 4=1",
                             "InnerProduct f 1 1 p q 0=3 1=1 2=9 9=4", "BinaryOp m 2 1 b q y 0=2"});

  EXPECT_EQ(shape(graph, "p"), (Shape{1, 3, 1, 1}));
  EXPECT_EQ(shape(graph, "q"), (Shape{1, 3}));
  EXPECT_EQ(shape(graph, "y"), (Shape{1, 3, 6, 8}));
  EXPECT_EQ(*input_of(graph, "m", 1).shape, (Shape{1, 3, 1, 1}));
}

TEST(NcnnImport, MultipliesRowsOfAMatrixThatFitsAndFlattensAnythingElse) {
  const auto graph =
      import({"Input x 0 1 x 0=8 1=5", "Split s 1 2 x a b", "InnerProduct rows 1 1 a ya 0=2 2=16",
              "InnerProduct whole 1 1 b yb 0=2 2=80"});

  EXPECT_EQ(shape(graph, "ya"), (Shape{1, 5, 2}));
  EXPECT_EQ(shape(graph, "yb"), (Shape{1, 2}));
}

TEST(NcnnImport, CountsAxesAfterTheBatch) {
  const auto graph =
      import({kImage, "Softmax s 1 1 x a 0=2 1=1", "Split sp 1 2 a b c", "Concat j 2 1 b c d 0=1",
              "Permute p 1 1 d e 0=3", "Reduction r 1 1 e f 0=3 1=0 -23303=2,0,-1 4=0 5=1"});

  EXPECT_EQ(op<Softmax>(graph, "s").axis, 3);
  EXPECT_EQ(shape(graph, "d"), (Shape{1, 3, 12, 8}));
  EXPECT_EQ(op<Transpose>(graph, "p").perm, (Ints{0, 2, 3, 1}));
  EXPECT_EQ(shape(graph, "e"), (Shape{1, 12, 8, 3}));
  EXPECT_EQ(shape(graph, "f"), (Shape{1, 8}));
}

TEST(NcnnImport, ReshapesFromInnermostParametersToOutermostExtents) {
  const auto graph = import({kImage, "Split s 1 3 x a b c", "Reshape m 1 1 a ya 0=-1 1=3",
                             "Reshape copy 1 1 b yb 0=0 1=-1", "Flatten f 1 1 c yc"});

  EXPECT_EQ(shape(graph, "ya"), (Shape{1, 3, 48}));
  EXPECT_EQ(shape(graph, "yb"), (Shape{1, 18, 8}));
  EXPECT_EQ(shape(graph, "yc"), (Shape{1, 144}));
}

TEST(NcnnImport, GivesSlicesTheRestThatIsLeft) {
  const auto graph = import({"Input x 0 1 x 0=4 1=4 2=10", "Split s 1 2 x a b",
                             "Slice rest 1 3 a p q r -23300=3,4,-233,-233",
                             "Slice even 1 2 b v w -23300=2,-233,-233 1=1"});

  EXPECT_EQ(shape(graph, "p"), (Shape{1, 4, 4, 4}));
  EXPECT_EQ(shape(graph, "q"), (Shape{1, 3, 4, 4}));
  EXPECT_EQ(shape(graph, "r"), (Shape{1, 3, 4, 4}));
  EXPECT_EQ(node(graph, "even").inputs.size(), 1u);
  EXPECT_EQ(shape(graph, "w"), (Shape{1, 10, 2, 4}));
}

TEST(NcnnImport, CropsByOffsetsByListsAndByAnotherBlob) {
  const auto graph =
      import({"Input x 0 1 x 0=8 1=6 2=10", "Split s 1 3 x a b c", "Input r 0 1 ref 0=3 1=2 2=10",
              "Crop offsets 1 1 a ya 0=1 2=4 3=5 4=-233 5=3",
              "Crop lists 1 1 b yb -23309=2,2,-3 -23310=2,0,-1 -23311=2,0,2",
              "Crop like 2 1 c ref yc 0=1 1=1"});

  EXPECT_EQ(shape(graph, "ya"), (Shape{1, 3, 6, 5}));
  EXPECT_EQ(shape(graph, "yb"), (Shape{1, 8, 6, 2}));
  EXPECT_EQ(shape(graph, "yc"), (Shape{1, 10, 2, 3}));
}

TEST(NcnnImport, PadsChannelsRowsAndColumns) {
  const auto graph = import({kImage, "Padding p 1 1 x y 0=1 1=2 2=3 3=4 7=5 8=6 5=0.5"});

  EXPECT_EQ(shape(graph, "y"), (Shape{1, 14, 9, 15}));
  EXPECT_EQ(input_of(graph, "p", 2).data->as<float>()[0], 0.5F);
}

TEST(NcnnImport, ResizesByScaleAndBySize) {
  const auto graph = import({kImage, "Split s 1 2 x a b", "Interp n 1 1 a ya 0=1 1=2.0 2=0.5",
                             "Interp l 1 1 b yb 0=2 3=12 4=10 6=1"});

  EXPECT_EQ(shape(graph, "ya"), (Shape{1, 3, 12, 4}));
  EXPECT_EQ(op<Resize>(graph, "n").coordinates, CoordinateMode::asymmetric);
  EXPECT_EQ(op<Resize>(graph, "n").nearest, NearestMode::floor);
  EXPECT_EQ(shape(graph, "yb"), (Shape{1, 3, 12, 10}));
  EXPECT_EQ(op<Resize>(graph, "l").coordinates, CoordinateMode::align_corners);
}

TEST(NcnnImport, TurnsReversedShufflesAround) {
  const auto graph = import({"Input x 0 1 x 0=2 1=2 2=12", "ShuffleChannel a 1 1 x y 0=3",
                             "ShuffleChannel b 1 1 y z 0=3 1=1"});

  EXPECT_EQ(op<ChannelShuffle>(graph, "a").groups, 3);
  EXPECT_EQ(op<ChannelShuffle>(graph, "b").groups, 4);
}

TEST(NcnnImport, WeighsTheSummandsOfEltwise) {
  const auto graph =
      import({kImage, "Split s 1 4 x a b c d", "Eltwise sub 2 1 a b p 0=1 -23301=2,1.0,-1.0",
              "Eltwise sum 2 1 c d q 0=1 -23301=2,1.0,0.5", "Eltwise mul 2 1 p q y 0=0"});

  EXPECT_EQ(op<Elementwise>(graph, "sub").kind, ElementwiseKind::sub);
  EXPECT_EQ(op<Elementwise>(graph, "sum/scaled1").kind, ElementwiseKind::mul);
  EXPECT_EQ(op<Elementwise>(graph, "sum").kind, ElementwiseKind::add);
  EXPECT_EQ(op<Elementwise>(graph, "mul").kind, ElementwiseKind::mul);
}

TEST(NcnnImport, ReadsATransformersParts) {
  const auto graph = import({"Input x 0 1 x 0=8 1=5", "MemoryData m 0 1 pos 0=8 1=5",
                             "BinaryOp add 2 1 x pos a", "LayerNorm n 1 1 a b 0=8 1=1.0e-6",
                             "Split s 1 3 b q k v", "MultiHeadAttention h 3 1 q k v c 0=8 1=2 2=64",
                             "Gemm g 1 1 c d 3=1 5=1 6=1 8=16 9=8 10=4", "GELU u 1 1 d e 0=1"});

  EXPECT_TRUE(std::holds_alternative<Constant>(node(graph, "m").op));
  EXPECT_EQ(shape(graph, "pos"), (Shape{1, 5, 8}));
  EXPECT_EQ(op<MultiHeadAttention>(graph, "h").heads, 2);
  EXPECT_EQ(node(graph, "h").inputs.size(), 11u);
  EXPECT_EQ(*input_of(graph, "g", 1).shape, (Shape{16, 8}));
  EXPECT_EQ(*input_of(graph, "g", 2).shape, (Shape{16}));
  EXPECT_EQ(shape(graph, "e"), (Shape{1, 5, 16}));
  EXPECT_EQ(op<Activate>(graph, "u").function.kind, ActivationKind::gelu_tanh);
}

TEST(NcnnImport, KeepsDetectionLayersAsUnknownWithNamedAttributes) {
  const auto graph = import({kImage, "DetectionOutput d 1 1 x y 0=21 1=4.5e-01"});

  const auto unknown = op<Unknown>(graph, "d");
  EXPECT_EQ(unknown.type, "DetectionOutput");
  EXPECT_EQ(unknown.attributes.at("num_class"), Attribute(std::int64_t{21}));
  EXPECT_EQ(unknown.attributes.at("nms_threshold"), Attribute(0.45));
  EXPECT_EQ(unknown.reason, "detection post-processing is not run by fleetfit");
}

TEST(NcnnImport, KeepsLayersThatItDoesNotKnow) {
  const auto graph =
      import({kImage, "LSTM l 1 1 x y -23330=4,2,7,5,1 0=7 -23301=2,0.5,1.5", "ReLU r 1 1 y z"});

  EXPECT_EQ(op<Unknown>(graph, "l").attributes.at("1"), Attribute(std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(shape(graph, "z"), (Shape{1, 5, 7}));
}

TEST(NcnnImport, AssumesWhatTheFileLeavesOpen) {
  const auto text =
      file_of({"Input in 0 1 in", "Split s 1 1 in b", "Convolution c 1 1 b y 0=2 1=3 6=18"});

  const auto assumed = import_ncnn(text).value();
  EXPECT_EQ(shape(assumed.graph, "in"), (Shape{1, 1, 224, 224}));
  EXPECT_THAT(assumed.graph.tensor(assumed.graph.inputs[0]).symbols,
              ElementsAre("", "", "height", "width"));
  ASSERT_EQ(assumed.assumed.size(), 2u);
  EXPECT_EQ(assumed.assumed[0].name, "height");

  const auto given = import_ncnn(text, {.dimensions = {{"height", 32}, {"width", 48}}}).value();
  EXPECT_EQ(shape(given.graph, "y"), (Shape{1, 2, 30, 46}));
  EXPECT_THAT(given.assumed, IsEmpty());
}

TEST(NcnnImport, SaysHowToSetOpenDimensionsThatDoNotFit) {
  const auto message = error_in({"Input in 0 1 in", "Convolution c 1 1 in y 0=2 1=1 6=6",
                                 "InnerProduct fc 1 1 y z 0=2 2=64"});

  EXPECT_THAT(message, HasSubstr("line 5: layer fc: "));
  EXPECT_THAT(message, HasSubstr("--dim height="));
}

TEST(NcnnImport, TakesCarriageReturnsBlankLinesAndLinesPastTheCount) {
  const auto model = import_ncnn(
      "7767517\r\n2 2\r\n\r\nInput x 0 1 x 0=8 1=6 2=3\r\n\r\nReLU r 1 1 x y\r\nNoop n 1 1 y "
      "z\r\n");

  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->graph.nodes.size(), 1u);
}

TEST(NcnnImport, RefusesWhatIsNoTextGraph) {
  EXPECT_THAT(error_of(std::string("")), HasSubstr("7767517"));
  EXPECT_THAT(error_of(std::string("hello\n")), HasSubstr("line 1"));
  EXPECT_THAT(error_of(std::string("\xDD\x85\x76\x00\x02", 5)), HasSubstr("binary"));
  EXPECT_THAT(error_of(std::string("7767517\n-1 3\n")), HasSubstr("line 2"));
  EXPECT_THAT(error_of(std::string("7767517\n2 2\nInput x 0 1 x\n")), HasSubstr("ends after 1"));
}

struct BadLayer {
  const char* line;
  const char* message;
};

TEST(NcnnImport, NamesLineAndLayerOfAMistake) {
  const std::vector<BadLayer> bad = {
      {"ReLU r 1 1", "1 inputs and 1 outputs are more than the line names"},
      {"ReLU r 99999999999 1 x y", "no numbers of inputs and outputs"},
      {"ReLU r 1 1 nowhere y", "no layer before it makes blob nowhere"},
      {"ReLU r 1 1 x x", "blob x is already made in line 3"},
      {"ReLU r 0 1 y", "needs more than 0 inputs"},
      {"ReLU r 1 0 x", "needs an output"},
      {"ReLU r 1 1 x y 0", "is no parameter"},
      {"ReLU r 1 1 x y 0=1e999", "is no 32-bit number"},
      {"ReLU r 1 1 x y 0=nan", "is no 32-bit number"},
      {"ReLU r 1 1 x y 0=1 0=2", "given twice"},
      {"ReLU r 1 1 x y -23300=3,1,2", "number of values that follow"},
      {"Convolution r 1 1 x y 0=2147483647 1=3 6=27", "no whole number of kernels"},
      {"Convolution r 1 1 x y 0=4294967296 1=3 6=27", "is no 32-bit number"},
      {"Convolution r 1 1 x y 0=2 1=0 6=27", "parameter 1 (kernel) is 0"},
      {"Convolution r 1 1 x y 0=2 1=3", "parameter 6 is missing"},
      {"Convolution r 1 1 x y 0=2 1=3 6=18", "channels"},
      {"Convolution r 1 1 x y 0=2 1=3 6=54 9=77", "activation_type 77"},
      {"ConvolutionDepthWise r 1 1 x y 0=4 1=1 6=4 7=3", "cannot be parted into 3 groups"},
      {"Softmax r 1 1 x y 0=1", "convert the model again"},
      {"Slice r 1 2 x y z -23300=2,5,-233", "does not fit the extent 3"},
      {"Slice r 1 3 x y z w -23300=2,1,-233", "2 sizes for 3 outputs"},
      {"Permute r 1 1 x y 0=9", "order_type 9"},
  };
  for (const auto& [line, message] : bad) {
    const auto error = error_in({kImage, line});
    EXPECT_THAT(error, testing::StartsWith("line 4: layer r: ")) << line;
    EXPECT_THAT(error, HasSubstr(message)) << line;
  }
}

TEST(NcnnImport, BoundsTheMemoryForScalesOfQuantizedWeights) {
  EXPECT_THAT(error_in({"Input x 0 1 x 0=1 1=1 2=1",
                        "Convolution c 1 1 x y 0=2000000000 1=1 6=2000000000 8=1"}),
              EndsWith("more channels than any network has"));
}

}  // namespace
}  // namespace fleetfit::graph
