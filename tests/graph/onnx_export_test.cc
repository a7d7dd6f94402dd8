// What ONNX has no operator for is written with those it has: the written network computes the
// same.

#include "fleetfit/graph/export.h"

#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <cmath>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/graph/zoo.h"
#include "tests/graph/onnx_models.h"
#include "tests/shared_data.h"

namespace fleetfit::graph {
namespace {

/// A graph of one node on inputs and constants.
class OneNode {
 public:
  TensorId input(const Shape& shape, DType dtype = DType::f32) {
    graph_.inputs.push_back(graph_.add_tensor({.name = name("x"), .dtype = dtype, .shape = shape}));
    return graph_.inputs.back();
  }

  TensorId weights(const Shape& shape) {
    const Recipe recipe{.count = static_cast<std::size_t>(elements(shape)), .spread = 1, .seed = 5};
    return graph_.add_tensor({.name = name("w"),
                              .dtype = DType::f32,
                              .shape = shape,
                              .data = TensorData::generate(recipe)});
  }

  TensorId ints(const Ints& values) { return graph_.add_ints(name("i"), values); }

  Tensor& tensor(TensorId id) { return graph_.tensor(id); }

  Graph apply(Operator op, const std::vector<TensorId>& inputs, const Activation& activation = {},
              int outputs = 1) {
    Node node{.name = "node", .op = std::move(op), .inputs = inputs, .activation = activation};
    for (int i = 0; i < outputs; ++i)
      node.outputs.push_back(graph_.add_tensor({.name = name("y")}));
    graph_.outputs = node.outputs;
    graph_.nodes.push_back(std::move(node));
    if (auto ok = infer_shapes(graph_); !ok) ADD_FAILURE() << ok.error().message;
    return graph_;
  }

 private:
  std::string name(const std::string& role) { return role + std::to_string(graph_.tensors.size()); }

  Graph graph_;
};

std::vector<double> numbers(const Value& value) {
  Graph scratch;
  const auto id =
      scratch.add_tensor({.dtype = value.dtype, .shape = value.shape, .data = value.data});
  return constant_numbers(scratch, id).value();
}

struct Tolerance {
  double absolute = 1e-5;
  double relative = 1e-5;
  double share_off = 0;  ///< how many of the values may be off by more than that
};

void expect_same_after_export(const Graph& graph, const Tolerance& tolerance = {}) {
  const auto bytes = export_onnx(graph);
  ASSERT_TRUE(bytes) << bytes.error().message;
  auto again = testing::import_text(*bytes);
  ASSERT_TRUE(again) << again.error().message;
  for (const auto& node : again->graph.nodes)
    EXPECT_FALSE(std::holds_alternative<Unknown>(node.op)) << describe(node);
  const auto inputs = random_inputs(graph, 3);
  const auto expected = evaluate(graph, inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  std::vector<Value> plain = inputs;
  for (auto& value : plain) value.quantization.reset();
  const auto actual = evaluate(again->graph, plain);
  ASSERT_TRUE(actual) << actual.error().message;
  for (std::size_t o = 0; o < expected->size(); ++o) {
    ASSERT_EQ((*expected)[o].shape, (*actual)[o].shape);
    ASSERT_EQ((*expected)[o].dtype, (*actual)[o].dtype);
    const auto wanted = numbers((*expected)[o]);
    const auto got = numbers((*actual)[o]);
    std::size_t off = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!(std::abs(wanted[i] - got[i]) <=
            tolerance.absolute + tolerance.relative * std::abs(wanted[i])))
        ++off;
    }
    EXPECT_LE(static_cast<double>(off), tolerance.share_off * static_cast<double>(wanted.size()))
        << "output " << o;
  }
}

Window window(std::int64_t kernel, std::int64_t stride) {
  return {.kernel = {kernel, kernel},
          .strides = {stride, stride},
          .dilations = {1, 1},
          .pads_begin = {1, 1},
          .pads_end = {0, 1}};
}

TEST(OnnxExport, FusedActivations) {
  for (const auto kind :
       {ActivationKind::relu, ActivationKind::silu, ActivationKind::gelu, ActivationKind::gelu_tanh,
        ActivationKind::mish, ActivationKind::hard_swish}) {
    SCOPED_TRACE(type_name(kind));
    OneNode one;
    const auto x = one.input({1, 3, 6, 6});
    expect_same_after_export(
        one.apply(Conv{.window = window(3, 2)}, {x, one.weights({4, 3, 3, 3})}, {kind}));
  }
}

TEST(OnnxExport, ClipWithOneBound) {
  OneNode one;
  const auto x = one.input({8});
  expect_same_after_export(
      one.apply(Activate{{ActivationKind::clip, -0.25F, std::numeric_limits<float>::max()}}, {x}));
}

TEST(OnnxExport, ImagesWithChannelsLast) {
  OneNode conv;
  const auto x = conv.input({1, 6, 6, 4});
  expect_same_after_export(
      conv.apply(Conv{.window = window(3, 1), .groups = 2, .layout = Layout::nhwc},
                 {x, conv.weights({6, 3, 3, 2})}, kRelu6));
  OneNode transposed;
  const auto z = transposed.input({1, 4, 4, 2});
  const ConvTranspose up{.window = window(3, 2), .output_padding = {1, 0}, .layout = Layout::nhwc};
  expect_same_after_export(transposed.apply(up, {z, transposed.weights({3, 3, 3, 2})}));
}

TEST(OnnxExport, MatrixProductsInWiderForms) {
  OneNode rows;
  const auto x = rows.input({2, 3, 4});
  expect_same_after_export(
      rows.apply(Gemm{.trans_b = true, .keep_leading = true}, {x, rows.weights({5, 4})}));
  OneNode flat;
  const auto z = flat.input({2, 3, 4});
  expect_same_after_export(
      flat.apply(Gemm{.trans_b = true}, {z, flat.weights({5, 12}), flat.weights({5})}));
  OneNode turned;
  const auto a = turned.input({2, 4, 3});
  const auto b = turned.input({2, 5, 4});
  expect_same_after_export(turned.apply(MatMul{.trans_a = true, .trans_b = true}, {a, b}));
}

TEST(OnnxExport, Attention) {
  for (const auto& shape : {Shape{5, 8}, Shape{2, 5, 8}}) {
    OneNode one;
    const auto x = one.input(shape);
    std::vector<TensorId> inputs{x, x, x};
    for (int i = 0; i < 4; ++i) {
      inputs.push_back(one.weights({8, 8}));
      inputs.push_back(one.weights({8}));
    }
    expect_same_after_export(one.apply(MultiHeadAttention{.heads = 2}, inputs),
                             {.absolute = 1e-4, .relative = 1e-4});
  }
}

TEST(OnnxExport, MovesThatOnnxWritesInSeveralSteps) {
  OneNode shuffle;
  expect_same_after_export(
      shuffle.apply(ChannelShuffle{.groups = 2}, {shuffle.input({1, 6, 2, 2})}));
  OneNode slice;
  const auto x = slice.input({3, 4, 5});
  expect_same_after_export(
      slice.apply(Slice{.squeezed = {1}}, {x, slice.ints({2}), slice.ints({3}), slice.ints({1})}));
  OneNode stack;
  const auto a = stack.input({2, 3});
  expect_same_after_export(stack.apply(Stack{.axis = -1}, {a, stack.input({2, 3})}));
  OneNode unstack;
  expect_same_after_export(unstack.apply(Unstack{.axis = 1}, {unstack.input({2, 3, 2})}, {}, 3));
  OneNode softmax;
  expect_same_after_export(
      softmax.apply(Softmax{.axis = 1, .to_end = true}, {softmax.input({2, 3, 4})}));
}

TEST(OnnxExport, ArithmeticThatOnnxWritesInSeveralSteps) {
  OneNode square;
  expect_same_after_export(square.apply(Unary{UnaryKind::square}, {square.input({5})}));
  OneNode difference;
  const auto a = difference.input({5});
  expect_same_after_export(difference.apply(Elementwise{ElementwiseKind::squared_difference},
                                            {a, difference.input({5})}));
}

TEST(OnnxExport, TruthsAboutFloats) {
  OneNode one;
  expect_same_after_export(one.apply(IsNaN{}, {one.input({2, 3, 4})}));
}

TEST(OnnxExport, NarrowIndices) {
  OneNode one;
  expect_same_after_export(
      one.apply(ArgExtreme{.axis = 1, .index_type = DType::i32}, {one.input({2, 7})}));
  OneNode shape;
  expect_same_after_export(shape.apply(ShapeOf{.index_type = DType::i32}, {shape.input({2, 7})}));
}

TEST(OnnxExport, MappableModelsHaveAlignedWeightsAndAreOrdinaryOnnx) {
  const auto graph = build_zoo_network("resnet20").value();
  const auto bytes = std::make_shared<std::string>(export_mappable_onnx(graph).value());

  onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(*bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(proto));

  const auto model = import_embedded_onnx(std::as_bytes(std::span(*bytes)), bytes).value();
  EXPECT_EQ(first_difference(graph, model.graph), std::nullopt);
  // Where `bytes` begins is not aligned; what matters is the distance from there.
  std::size_t weights = 0;
  for (const auto& tensor : model.graph.tensors) {
    if (!tensor.data || tensor.dtype != DType::f32) continue;
    const auto raw = std::string_view(*bytes).find(std::string(
        reinterpret_cast<const char*>(tensor.data->bytes().data()), tensor.data->size_bytes()));
    if (tensor.data->size_bytes() > 256) {
      EXPECT_EQ(raw % 64, 0U) << tensor.name;
      ++weights;
    }
  }
  EXPECT_GT(weights, 20U);
}

TEST(OnnxExport, RefusesWhatOnnxCannotExpress) {
  OneNode one;
  const auto graph =
      one.apply(Unknown{.type = "Odd", .reason = "no such operator is known"}, {one.input({1})});
  const auto bytes = export_onnx(graph);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::unsupported);
  EXPECT_EQ(bytes.error().message,
            "node node (Odd) cannot be written as ONNX: no such operator is known");
}

/// Real networks: float ones are to agree closely; of quantized ones a few values may fall to the
/// other side of a rounding.
class TfliteToOnnx : public ::testing::TestWithParam<std::string> {};

TEST_P(TfliteToOnnx, ComputesTheSame) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "there is no folder of shared data";
  const auto model = import_model(*data / "models/tflite" / (GetParam() + ".tflite"));
  ASSERT_TRUE(model) << model.error().message;
  const bool quantized =
      GetParam().find("int8") != std::string::npos || GetParam().find("quant") != std::string::npos;
  expect_same_after_export(model->graph, quantized ? Tolerance{.absolute = 1, .share_off = 0.02}
                                                   : Tolerance{.absolute = 1e-4});
}

INSTANTIATE_TEST_SUITE_P(Real, TfliteToOnnx,
                         ::testing::Values("coral_mobilenet_v1_0.25_128_quant",
                                           "mediapipe_face_detection_short_range",
                                           "mlperftiny_ad01_int8", "mlperftiny_ic_resnet8_fp32",
                                           "mlperftiny_ic_resnet8_int8",
                                           "mlperftiny_kws_dscnn_int8", "tflm_micro_speech_int8",
                                           "tflm_person_detect_int8"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace fleetfit::graph
