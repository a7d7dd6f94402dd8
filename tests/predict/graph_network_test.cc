#include "fleetfit/predict/graph_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fleetfit::predict {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

// One feature, one layer of messages of width 1: a node becomes x + 10 before + 100 behind - 1.
GraphNetwork::Parts small_parts() {
  return {.features = {"size"},
          .inputs = {.mean = {0}, .scale = {1}},
          .layers = {{.inputs = 3, .outputs = 1, .weights = {1, 10, 100}, .bias = {-1}}},
          .readout = {{.inputs = 2, .outputs = 1, .weights = {1, 2}, .bias = {3}}},
          .sum_scale = 0.5,
          .output = {.offset = 0, .scale = 1, .min = 0.1, .max = 1e6}};
}

NodeGraph chain() { return {.features = 1, .nodes = {1, 2, 3}, .edges = {{0, 1}, {1, 2}}}; }

TEST(GraphNetwork, GivesWhatIsWorkedOutByHand) {
  const auto network = GraphNetwork::make(small_parts()).value();
  // Nodes: 1 + 200 - 1 = 200, 2 + 10 + 300 - 1 = 311, 3 + 20 - 1 = 22; sum 533, mean 533 / 3.
  EXPECT_NEAR(network.predict(chain()).value(), 533.0 / 3 + 2 * 0.5 * 533 + 3, 1e-3);
  // A node without a neighbour: 0.5 - 1 is below 0.
  EXPECT_DOUBLE_EQ(network.predict(NodeGraph{.features = 1, .nodes = {0.5}}).value(), 3);
}

TEST(GraphNetwork, AddsUpWhatItReadsOutOfNodes) {
  auto parts = small_parts();
  parts.readout_of = ReadoutOf::nodes;
  parts.readout = {{.inputs = 1, .outputs = 1, .weights = {2}, .bias = {3}}};
  const auto network = GraphNetwork::make(parts).value();
  // Nodes as above; each gives twice its number and 3.
  EXPECT_NEAR(network.predict(chain()).value(), 0.5 * (2 * 533 + 3 * 3), 1e-3);
  const auto json = network.to_json();
  EXPECT_EQ(json["readout_of"], "nodes");
  EXPECT_EQ(GraphNetwork::from_json(core::JsonView(json, "g.json")).value().to_json(), json);
}

TEST(GraphNetwork, SeesHowNodesAreConnectedButNotHowTheyAreNumbered) {
  const auto network = GraphNetwork::make(small_parts()).value();
  const NodeGraph numbered{.features = 1, .nodes = {3, 1, 2}, .edges = {{2, 0}, {1, 2}}};
  EXPECT_DOUBLE_EQ(network.predict(numbered).value(), network.predict(chain()).value());
  NodeGraph turned = chain();
  turned.edges = {{1, 0}, {2, 1}};
  EXPECT_NE(network.predict(turned).value(), network.predict(chain()).value());
}

TEST(GraphNetwork, GivesManyAtOnceAndNamesTheOneThatIsNone) {
  const auto network = GraphNetwork::make(small_parts()).value();
  std::vector graphs{chain(), NodeGraph{.features = 1, .nodes = {0.5}}};
  EXPECT_EQ(network.predict(graphs).value(),
            (std::vector{network.predict(graphs[0]).value(), network.predict(graphs[1]).value()}));
  graphs[1].edges = {{0, 1}};
  EXPECT_THAT(network.predict(graphs).error().message,
              HasSubstr("graph 1: the edge from 0 to 1 is not between two of 1 nodes"));
}

TEST(GraphNetwork, RefusesGraphsThatAreNone) {
  const auto network = GraphNetwork::make(small_parts()).value();
  EXPECT_THAT(network.predict(NodeGraph{.features = 1}).error().message, HasSubstr("no node"));
  EXPECT_THAT(network.predict(NodeGraph{.features = 2, .nodes = {1, 2}}).error().message,
              HasSubstr("nodes have 2 numbers, expected 1"));
  EXPECT_THAT(network.predict(NodeGraph{.features = 1, .nodes = {NAN}}).error().message,
              HasSubstr("node 0: a number is nan"));
  EXPECT_THAT(
      network.predict(NodeGraph{.features = 1, .nodes = {1}, .edges = {{-1, 0}}}).error().message,
      HasSubstr("edge from -1"));
}

TEST(GraphNetwork, IsTheSameAfterItWasWrittenAndRead) {
  const auto network = GraphNetwork::make(small_parts()).value();
  const auto json = Json::parse(network.to_json().dump());
  const auto again = GraphNetwork::from_json(core::JsonView(json, "g.json")).value();
  EXPECT_EQ(again.predict(chain()).value(), network.predict(chain()).value());
  EXPECT_EQ(again.parts().features, network.parts().features);
  EXPECT_EQ(again.to_json(), json);
}

TEST(GraphNetwork, RefusesDamagedFilesNamingThePlace) {
  const auto whole = GraphNetwork::make(small_parts()).value().to_json();
  struct Damage {
    const char* path;
    Json value;
    const char* complaint;
  };
  const Damage damages[] = {
      {"/type", "mlp", "g.json: type: expected \"graph-network\""},
      {"/version", 3, "version 3 of graph-network is not known"},
      {"/features", Json::array({"a", "b"}), "features: 2 names for 1 inputs"},
      {"/layers/0/inputs", 2, "layers"},
      {"/layers", Json::array(), "layers: there are none"},
      {"/readout/0/inputs", 1, "readout[0]: takes 1 numbers"},
      {"/readout/0/weights", Json::array({1, 2}), "readout[0].weights"},
      {"/readout_of", "edges", "readout_of: \"edges\" is none of graph, nodes"},
      {"/readout_of", "nodes", "readout[0]: takes 2 numbers"},
      {"/sum_scale", "big", "sum_scale"},
      {"/output/min", -1, "output"},
      {"/more", 1, "more"},
  };
  for (const auto& [path, value, complaint] : damages) {
    auto json = whole;
    json[Json::json_pointer(path)] = value;
    const auto network = GraphNetwork::from_json(core::JsonView(json, "g.json"));
    ASSERT_FALSE(network) << path;
    EXPECT_THAT(network.error().message, HasSubstr("g.json")) << path;
    EXPECT_THAT(network.error().message, HasSubstr(complaint)) << path;
  }
}

}  // namespace
}  // namespace fleetfit::predict
