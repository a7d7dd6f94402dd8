// Every network of the zoo survives export and import, and ONNX's own checker and shape inference
// accept it.

#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/zoo.h"
#include "tests/sanitized.h"

namespace fleetfit::graph {
namespace {

constexpr std::size_t kMostBytes = kSanitized ? 20'000'000 : 2'000'000'000;

class ZooExport : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const auto& entry : zoo()) list.push_back(entry.name);
  return list;
}

std::size_t constant_bytes(const Graph& graph) {
  std::size_t sum = 0;
  for (const auto& tensor : graph.tensors) sum += tensor.data ? tensor.data->size_bytes() : 0;
  return sum;
}

void expect_accepted_by_onnx(const std::string& bytes, const Tensor& output) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  // Forget what we wrote of the outputs, so that ONNX has to find it out.
  model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  ASSERT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     {true, 1, true}));
  const auto& shape = model.graph().output(0).type().tensor_type().shape();
  ASSERT_EQ(static_cast<std::size_t>(shape.dim_size()), output.shape->size());
  for (int d = 1; d < shape.dim_size(); ++d)
    EXPECT_EQ(shape.dim(d).dim_value(), (*output.shape)[static_cast<std::size_t>(d)]);
}

TEST_P(ZooExport, ThenImportGivesAnEqualGraph) {
  const auto graph = build_zoo_network(GetParam()).value();
  if (constant_bytes(graph) > kMostBytes)
    GTEST_SKIP() << "under sanitizers networks of more than " << kMostBytes
                 << " bytes take too long";
  const auto bytes = export_onnx(graph);
  ASSERT_TRUE(bytes) << bytes.error().message;
  auto again = import_onnx(std::as_bytes(std::span(*bytes)), "nowhere");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(first_difference(graph, again->graph), std::nullopt);
  expect_accepted_by_onnx(*bytes, graph.tensor(graph.outputs[0]));
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooExport, ::testing::ValuesIn(names()),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace fleetfit::graph
