#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {
namespace {

Shape output_shape(const Graph& graph) { return *graph.tensor(graph.outputs.at(0)).shape; }

std::int64_t constant_elements(const Graph& graph) {
  std::int64_t total = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.is_constant()) total += elements(*tensor.shape);
  }
  return total;
}

TEST(Zoo, AWidthMayBeWrittenAsPapersDo) {
  const auto network = build_zoo_network("mobilenet_v1_0.5");
  const auto same = build_zoo_network("mobilenet_v1_x0_5");
  ASSERT_TRUE(network && same);
  EXPECT_EQ(network->nodes.size(), same->nodes.size());
  EXPECT_EQ(network->tensor(network->nodes[0].outputs[0]).shape,
            same->tensor(same->nodes[0].outputs[0]).shape);
  EXPECT_FALSE(build_zoo_network("mobilenet_v1_0.6"));
}

TEST(Zoo, NamesAreUnique) {
  std::set<std::string> names;
  for (const ZooEntry& entry : zoo()) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
}

TEST(Zoo, EveryNetworkTakesAnyBatch) {
  for (const ZooEntry& entry : zoo()) {
    SCOPED_TRACE(entry.name);
    Result<Graph> graph = build_zoo_network(entry.name);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(output_shape(*graph), (Shape{1, entry.classes}));
    const Status bound = bind_dimensions(*graph, {{"N", 3}});
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_EQ(output_shape(*graph), (Shape{3, entry.classes}));
  }
}

TEST(Zoo, EveryNetworkTakesAnyWidthAndClasses) {
  for (const ZooEntry& entry : zoo()) {
    for (const double width : {0.1, 0.25, 0.35, 0.5, 0.75, 1.3, 2.0}) {
      SCOPED_TRACE(entry.name + " at width " + std::to_string(width));
      const Result<Graph> graph = build_zoo_network(entry.name, {.width = width, .classes = 7});
      ASSERT_TRUE(graph) << graph.error().message;
      EXPECT_EQ(output_shape(*graph), (Shape{1, 7}));
    }
  }
}

TEST(Zoo, HalfTheWidthNeedsFarLessMemory) {
  for (const ZooEntry& entry : zoo()) {
    const Graph full = build_zoo_network(entry.name, {.classes = 10}).value();
    const Graph half = build_zoo_network(entry.name, {.width = 0.5, .classes = 10}).value();
    EXPECT_LT(constant_elements(half), 0.75 * static_cast<double>(constant_elements(full)))
        << entry.name;
  }
}

TEST(Zoo, OptionsThatDoNotFitAreErrors) {
  for (const ZooEntry& entry : zoo()) {
    EXPECT_TRUE(build_zoo_network(entry.name, {.channels = 1})) << entry.name;
    for (const ZooOptions& options :
         {ZooOptions{.image = 1}, ZooOptions{.width = 0.02, .image = 33},
          ZooOptions{.image = 20}}) {
      const Result<Graph> graph = build_zoo_network(entry.name, options);
      if (!graph) {
        EXPECT_EQ(graph.error().code, ErrorCode::invalid_input) << graph.error().message;
      }
    }
  }
}

}  // namespace
}  // namespace fleetfit::graph
