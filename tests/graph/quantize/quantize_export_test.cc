// What quantize() makes is ordinary ONNX: its checker accepts it, and it reads back as it was.

#include <gmock/gmock.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/zoo.h"
#include "graph/onnx/lowering.h"
#include "tests/graph/quantize/quantize_testing.h"

namespace fleetfit::graph {
namespace {

Graph reimported(const std::string& bytes) {
  return import_onnx(std::as_bytes(std::span(bytes)), "nowhere").value().graph;
}

Graph small_network(const char* name) {
  return prepared(build_zoo_network(name, {.width = 0.25, .classes = 10, .image = 32}).value());
}

class QuantizedExport : public ::testing::TestWithParam<const char*> {};

TEST_P(QuantizedExport, IsAcceptedByOnnxAndReadsBackEqual) {
  const auto net = small_network(GetParam());
  const auto result = quantize(net, made_up_ranges(net)).value();
  const auto bytes = export_onnx(result);
  ASSERT_TRUE(bytes) << bytes.error().message;

  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     {true, 1, true}));
  EXPECT_EQ(first_difference(onnx_format::lower(result).value(), reimported(*bytes)), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Networks, QuantizedExport,
                         ::testing::Values("mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0",
                                           "shufflenet_v2_x0_5", "deit_tiny"),
                         [](const auto& network) { return std::string(network.param); });

TEST(QuantizedExport, PutsReluBetweenTheLayerAndItsRounding) {
  const auto net = small_network("resnet18");
  const auto bytes = export_onnx(quantize(net, made_up_ranges(net)).value()).value();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  std::map<std::string, const onnx::NodeProto*> made_by;
  for (const auto& node : model.graph().node()) made_by[node.output(0)] = &node;
  const auto type_behind = [&](const std::string& tensor) {
    const auto found = made_by.find(tensor);
    return found == made_by.end() ? std::string() : found->second->op_type();
  };
  int relus = 0;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() == "Relu") {
      ++relus;
      EXPECT_THAT(type_behind(node.input(0)), ::testing::AnyOf("Conv", "Add")) << node.name();
    }
    if (node.op_type() != "Conv") continue;
    for (const auto& input : node.input())
      EXPECT_EQ(type_behind(input), "DequantizeLinear") << node.name();
  }
  EXPECT_EQ(relus, 17);  // of ResNet-18: one in the stem, two in each of eight blocks
}

}  // namespace
}  // namespace fleetfit::graph
