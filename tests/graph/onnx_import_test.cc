#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/net_builder.h"
#include "tests/core/temporary_folder.h"
#include "tests/graph/onnx_models.h"

namespace fleetfit::graph {
namespace {

using namespace testing;

const Tensor& output_of(const ImportedModel& model) {
  return model.graph.tensor(model.graph.outputs[0]);
}

// --- What is read ---

TEST(OnnxImport, KeepsNodesNamesAndOrder) {
  auto proto = onnx_model(17);
  add_input(proto, "x", {1, 4});
  add_node(proto, "Relu", {"x"}, "a");
  add_node(proto, "Exp", {"a"}, "y");
  add_output(proto, "y", {1, 4});
  const auto model = import_proto(proto).value();
  ASSERT_EQ(model.graph.nodes.size(), 2u);
  EXPECT_EQ(model.graph.nodes[0].name, "make_a");
  EXPECT_EQ(type_name(model.graph.nodes[1].op), "Exp");
  EXPECT_EQ(output_of(model).shape, (Shape{1, 4}));
  EXPECT_TRUE(model.assumed.empty());
}

TEST(OnnxImport, SortsNodesThatStandInTheWrongOrder) {
  auto proto = onnx_model(17);
  add_input(proto, "x", {2});
  add_node(proto, "Exp", {"a"}, "y");
  add_node(proto, "Relu", {"x"}, "a");
  add_output(proto, "y", {2});
  EXPECT_EQ(import_proto(proto)->graph.nodes[0].name, "make_a");
}

TEST(OnnxImport, OpenBatchTakesTheExtentThatIsAskedFor) {
  auto proto = onnx_model(17);
  add_input(proto, "x", {-1, 4});
  add_node(proto, "Relu", {"x"}, "y");
  add_output(proto, "y", {-1, 4});
  auto one = import_proto(proto).value();
  EXPECT_EQ(one.graph.tensor(one.graph.inputs[0]).symbols, (std::vector<std::string>{"N", ""}));
  ASSERT_EQ(one.assumed.size(), 1u);
  EXPECT_EQ(one.assumed[0].extent, 1);
  const auto eight = import_proto(proto, "nowhere", {.dimensions = {{"N", 8}}}).value();
  EXPECT_EQ(output_of(eight).shape, (Shape{8, 4}));
  EXPECT_TRUE(eight.assumed.empty());
}

TEST(OnnxImport, ReadsTypedDataAsWellAsRaw) {
  auto proto = onnx_model(17);
  add_input(proto, "x", {3});
  auto& typed = add_initializer(proto, "typed", {3});
  for (const float value : {1.5F, -2.0F, 3.0F}) typed.add_float_data(value);
  auto& raw = add_initializer(proto, "raw", {3});
  raw.set_raw_data(std::string(reinterpret_cast<const char*>(typed.float_data().data()), 12));
  auto& counts = add_initializer(proto, "counts", {1});
  counts.set_data_type(onnx::TensorProto::INT64);
  counts.add_int64_data(-7);
  add_node(proto, "Add", {"x", "typed"}, "a");
  add_node(proto, "Add", {"a", "raw"}, "b");
  add_node(proto, "Reshape", {"b", "shape"}, "y");
  auto& shape = add_initializer(proto, "shape", {1});
  shape.set_data_type(onnx::TensorProto::INT64);
  shape.add_int64_data(-1);
  add_output(proto, "y", {3});
  const auto model = import_proto(proto).value();
  const auto& first = model.graph.tensor(model.graph.nodes[0].inputs[1]);
  EXPECT_EQ(first.data->as<float>()[1], -2.0F);
  EXPECT_TRUE(*first.data == *model.graph.tensor(model.graph.nodes[1].inputs[1]).data);
  EXPECT_EQ(constant_ints(model.graph, model.graph.nodes[2].inputs[1]), (Ints{-1}));
}

TEST(OnnxImport, FollowsShapesThatTheNetworkComputes) {
  auto proto = onnx_model(17);
  add_input(proto, "x", {2, 3, 4, 5});
  add_node(proto, "Shape", {"x"}, "shape");
  auto& zero = add_initializer(proto, "zero", {1});
  zero.set_data_type(onnx::TensorProto::INT64);
  zero.add_int64_data(0);
  add_node(proto, "Gather", {"shape", "zero"}, "batch");
  auto& rest = add_initializer(proto, "rest", {1});
  rest.set_data_type(onnx::TensorProto::INT64);
  rest.add_int64_data(-1);
  auto& concat = add_node(proto, "Concat", {"batch", "rest"}, "wanted");
  add_attribute(concat, "axis", onnx::AttributeProto::INT).set_i(0);
  add_node(proto, "Reshape", {"x", "wanted"}, "y");
  add_output(proto, "y", {2, 60});
  EXPECT_EQ(output_of(import_proto(proto).value()).shape, (Shape{2, 60}));
}

TEST(OnnxImport, KeepsAnUnknownOperatorWithItsAttributesAndDeclaredShape) {
  auto proto = relu_model();
  auto& node = *proto.mutable_graph()->mutable_node(0);
  node.set_op_type("Frobnicate");
  node.set_domain("com.example");
  add_ints(node, "knobs", {3, 1});
  add_attribute(node, "mode", onnx::AttributeProto::STRING).set_s("wild");
  const auto model = import_proto(proto).value();
  const auto& unknown = std::get<Unknown>(model.graph.nodes[0].op);
  EXPECT_EQ(unknown.type, "Frobnicate");
  EXPECT_EQ(unknown.domain, "com.example");
  EXPECT_EQ(std::get<Ints>(unknown.attributes.at("knobs")), (Ints{3, 1}));
  EXPECT_EQ(std::get<std::string>(unknown.attributes.at("mode")), "wild");
  EXPECT_EQ(unknown.reason, "operators of domain com.example are not known");
  EXPECT_EQ(output_of(model).shape, (Shape{1, 4}));
}

/// The same network as an old opset and as opset 17 write it.
TEST(OnnxImport, BringsOldOpsetsToOneForm) {
  auto old = onnx_model(9);
  add_input(old, "x", {1, 2, 4, 4});
  auto& slice = add_node(old, "Slice", {"x"}, "a");
  add_ints(slice, "starts", {1});
  add_ints(slice, "ends", {3});
  add_ints(slice, "axes", {2});
  auto& clip = add_node(old, "Clip", {"a"}, "b");
  add_attribute(clip, "min", onnx::AttributeProto::FLOAT).set_f(0);
  add_attribute(clip, "max", onnx::AttributeProto::FLOAT).set_f(6);
  auto& squeeze = add_node(old, "Squeeze", {"b"}, "y");
  add_ints(squeeze, "axes", {0});
  add_output(old, "y", {2, 2, 4});
  const auto model = import_proto(old).value();
  const auto& nodes = model.graph.nodes;
  EXPECT_EQ(constant_ints(model.graph, nodes[0].inputs[1]), (Ints{1}));
  EXPECT_EQ(constant_ints(model.graph, nodes[0].inputs[3]), (Ints{2}));
  EXPECT_EQ(std::get<Activate>(nodes[1].op).function, kRelu6);
  EXPECT_EQ(constant_ints(model.graph, nodes[2].inputs[1]), (Ints{0}));
  EXPECT_EQ(output_of(model).shape, (Shape{2, 2, 4}));
}

// --- What is refused, and how ---

std::string refusal(const onnx::ModelProto& proto) {
  const auto model = import_proto(proto);
  if (model) return "was read";
  EXPECT_EQ(model.error().code, ErrorCode::invalid_input);
  return model.error().message;
}

TEST(OnnxImport, NamesATensorThatNothingMakes) {
  auto proto = relu_model();
  proto.mutable_graph()->mutable_node(0)->set_input(0, "ghost");
  EXPECT_EQ(refusal(proto), "node make_y (Relu) reads tensor 'ghost', which nothing makes");
}

TEST(OnnxImport, NamesANodeOfACycle) {
  auto proto = onnx_model(17);
  add_input(proto, "x", {1});
  add_node(proto, "Add", {"x", "b"}, "a");
  add_node(proto, "Relu", {"a"}, "b");
  add_output(proto, "b", {1});
  EXPECT_EQ(refusal(proto), "node make_a (Add) waits for its own result: the graph has a cycle");
}

TEST(OnnxImport, NamesATensorThatIsMadeTwice) {
  auto proto = relu_model();
  add_node(proto, "Exp", {"x"}, "y");
  EXPECT_EQ(refusal(proto), "tensor 'y' is made twice");
}

TEST(OnnxImport, RefusesAbsurdShapes) {
  auto proto = relu_model();
  set_type(*proto.mutable_graph()->mutable_input(0), "x", {});
  proto.mutable_graph()->mutable_input(0)->Clear();
  set_type(*proto.mutable_graph()->mutable_input(0), "x",
           {std::int64_t{1} << 40, std::int64_t{1} << 40});
  EXPECT_EQ(refusal(proto), "input 'x': 1099511627776x1099511627776 is absurdly large");
  auto weights = relu_model();
  add_initializer(weights, "w", {std::int64_t{1} << 62, 8}).set_raw_data("1234");
  EXPECT_EQ(refusal(weights), "tensor 'w': 4611686018427387904x8 is absurdly large");
}

TEST(OnnxImport, RefusesDataOfTheWrongLength) {
  auto proto = relu_model();
  add_initializer(proto, "w", {2, 2}).set_raw_data("123456");
  EXPECT_EQ(refusal(proto), "tensor 'w': 6 bytes of data where the shape wants 16");
}

TEST(OnnxImport, SaysWhichNodesOperandsDoNotFit) {
  auto proto = onnx_model(17);
  add_input(proto, "x", {1, 3, 8, 8});
  add_initializer(proto, "w", {4, 2, 1, 1}).set_raw_data(std::string(32, '\0'));
  add_node(proto, "Conv", {"x", "w"}, "y");
  add_output(proto, "y", {1, 4, 8, 8});
  EXPECT_EQ(refusal(proto), "node make_y (Conv): input has 3 channels, weights want 2");
}

TEST(OnnxImport, SurvivesATruncationAtEveryByte) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 3, 8, 8});
  net.output(net.linear(net.flatten(net.conv_bn(x, {.out = 4, .kernel = 3}, kRelu6)), 5), "y");
  const auto bytes = export_onnx(std::move(net).finish().value()).value();
  int read = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    read += import_text(bytes.substr(0, length)).has_value() ? 1 : 0;
  }
  // A file cut between two top-level fields may still be whole enough.
  EXPECT_LT(read, 10);
}

/// A length-delimited field of a message.
std::string field(char tag, const std::string& payload) {
  std::string length;
  auto left = payload.size();
  do {
    length += static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    left >>= 7;
  } while (left > 0);
  return tag + length + payload;
}

constexpr char kGraphOfModel = '\x3a';
constexpr char kNodeOfGraph = '\x0a';
constexpr char kAttributeOfNode = '\x2a';
constexpr char kGraphOfAttribute = '\x32';

TEST(OnnxImport, RefusesMoreMessagesThanAnyNetworkHas) {
  // Empty nodes take two bytes each in the file and hundreds in memory.
  std::string nodes;
  for (int i = 0; i < 1'500'000; ++i) nodes += field(kNodeOfGraph, "");
  const auto model = import_text(field(kGraphOfModel, nodes));
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message, "not a valid ONNX model: more than a million parts");
}

TEST(OnnxImport, DoesNotFollowGraphsInsideOfNodes) {
  std::string graph;
  for (int depth = 0; depth < 2'000; ++depth) {
    graph = field(kNodeOfGraph,
                  "\x22\x02If" + field(kAttributeOfNode, field(kGraphOfAttribute, graph)));
  }
  const auto model = import_text(field(kGraphOfModel, graph));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(std::get<Unknown>(model->graph.nodes[0].op).reason, "control flow is not supported");
}

TEST(OnnxImport, RefusesANodeWithoutAType) {
  auto proto = relu_model();
  proto.mutable_graph()->mutable_node(0)->clear_op_type();
  EXPECT_EQ(refusal(proto), "node make_y has no operator type");
}

TEST(OnnxImport, DropoutThatTrainsIsNotTakenForNothing) {
  auto proto = onnx_model(17);
  add_input(proto, "x", {4});
  auto& flag = add_initializer(proto, "training", {});
  flag.set_data_type(onnx::TensorProto::BOOL);
  flag.add_int32_data(1);
  add_node(proto, "Dropout", {"x", "", "training"}, "y");
  add_output(proto, "y", {4});
  EXPECT_TRUE(std::holds_alternative<Unknown>(import_proto(proto)->graph.nodes[0].op));
  proto.mutable_graph()->mutable_initializer(0)->set_int32_data(0, 0);
  EXPECT_TRUE(std::holds_alternative<Dropout>(import_proto(proto)->graph.nodes[0].op));
}

// --- Tensors in files of their own ---

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.path() / "model");
    std::ofstream(folder_.path() / "model/weights.bin", std::ios::binary)
        << std::string(8, 'x') + std::string(16, '\0');
    std::ofstream(folder_.path() / "secret.bin", std::ios::binary) << std::string(64, 's');
  }

  onnx::ModelProto model_with(const std::string& location, std::int64_t offset) {
    auto proto = relu_model();
    auto& weights = add_initializer(proto, "w", {1, 4});
    weights.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location},
                                     {"offset", std::to_string(offset)},
                                     {"length", "16"}}) {
      auto* entry = weights.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    proto.mutable_graph()->mutable_node(0)->set_op_type("Add");
    proto.mutable_graph()->mutable_node(0)->add_input("w");
    return proto;
  }

  Result<ImportedModel> import_with(const std::string& location, std::int64_t offset) {
    return import_proto(model_with(location, offset), folder_.path() / "model");
  }

  core::TemporaryFolder folder_;
};

TEST_F(ExternalData, IsReadFromTheModelsFolder) {
  const auto model = import_with("weights.bin", 8).value();
  const auto& weights = model.graph.tensor(model.graph.nodes[0].inputs[1]);
  EXPECT_EQ(weights.data->as<float>()[3], 0.0F);
}

TEST_F(ExternalData, OutsideOfTheFolderIsRefused) {
  const auto outside = [&](const std::string& location) {
    return import_with(location, 0).error().message;
  };
  EXPECT_EQ(outside("../secret.bin"),
            "tensor 'w': external data '../secret.bin' lies outside of the model's folder");
  EXPECT_EQ(outside("a/../../secret.bin"),
            "tensor 'w': external data 'a/../../secret.bin' lies outside of the model's folder");
  const auto absolute = (folder_.path() / "secret.bin").string();
  EXPECT_EQ(outside(absolute),
            "tensor 'w': external data '" + absolute + "' lies outside of the model's folder");
  std::filesystem::create_symlink(folder_.path() / "secret.bin", folder_.path() / "model/link.bin");
  EXPECT_EQ(outside("link.bin"),
            "tensor 'w': external data 'link.bin' lies outside of the model's folder");
}

TEST_F(ExternalData, ThatEndsTooEarlyIsRefused) {
  EXPECT_EQ(import_with("weights.bin", 16).error().message,
            "tensor 'w': external data 'weights.bin' ends before byte 32");
  EXPECT_EQ(import_with("none.bin", 0).error().code, ErrorCode::not_found);
}

TEST_F(ExternalData, OfAModelInsideAnotherFileIsRefused) {
  const auto bytes = model_with("weights.bin", 8).SerializeAsString();
  EXPECT_EQ(import_embedded_onnx(std::as_bytes(std::span(bytes)), nullptr).error().message,
            "tensor 'w': tensors in files of their own are not allowed here");
}

}  // namespace
}  // namespace fleetfit::graph
