#include "fleetfit/train/predictors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/predict/regressor.h"
#include "tests/train/surroundings.h"
#include "train/torch/fits.h"

namespace fleetfit::train {
namespace {

using predict::NodeGraph;
using testing::HasSubstr;

const std::vector<std::string> kFeatures = {"slow", "quick"};

// Nodes in a row, some of which are slow. A slow one right after another slow one costs three times
// as much, which only the edges tell.
struct Rows {
  std::vector<NodeGraph> graphs;
  std::vector<double> ms;

  Rows(std::size_t count, std::uint64_t seed) {
    core::Random random(seed);
    for (std::size_t i = 0; i < count; ++i) add(random);
  }

  void add(core::Random& random) {
    NodeGraph graph{.features = 2};
    double time = 1;
    bool was_slow = false;
    const auto nodes = static_cast<int>(random.between(3, 8));
    for (int node = 0; node < nodes; ++node) {
      const bool slow = random.chance(0.5);
      graph.nodes.insert(graph.nodes.end(), {slow ? 1.0 : 0.0, slow ? 0.0 : 1.0});
      if (node > 0) graph.edges.push_back({.from = node - 1, .to = node});
      time += slow ? (was_slow ? 3 : 1) : 0.1;
      was_slow = slow;
    }
    graphs.push_back(std::move(graph));
    ms.push_back(time);
  }

  GraphTrainingSet set() const { return {.features = kFeatures, .graphs = graphs, .ms = ms}; }
};

TEST(GraphNetworkTraining, LearnsWhatDependsOnNeighbours) {
  Surroundings here;
  const Rows rows(500, 1);
  const auto trained =
      train_graph_network(rows.set(), {.trials = 1, .max_epochs = 60}, here.context()).value();
  const Rows others(200, 2);
  const auto predicted = trained.network.predict(others.graphs).value();
  EXPECT_LT(predict::mape_percent(predicted, others.ms), 6);
  EXPECT_THAT(trained.settings, HasSubstr("layers 3"));
}

TEST(GraphNetworkTraining, IsTheSameWhateverTheNumberOfThreads) {
  const Rows rows(40, 1);
  const TrainingOptions options{.trials = 5, .max_epochs = 22};
  Surroundings alone(1);
  Surroundings many(3);
  EXPECT_EQ(train_graph_network(rows.set(), options, alone.context()).value().network.to_json(),
            train_graph_network(rows.set(), options, many.context()).value().network.to_json());
}

void expect_the_same_at_work(predict::ReadoutOf readout_of) {
  const Rows rows(30, 1);
  GraphFitData data{.features = 2, .sum_scale = 0.2, .output = {.min = 1e-30, .max = 1e30}};
  for (const auto& graph : rows.graphs) {
    data.training.graphs.push_back(
        {.nodes = {graph.nodes.begin(), graph.nodes.end()}, .edges = graph.edges});
    data.training.targets.slope.push_back(1);
    data.training.targets.offset.push_back(-5);
    data.training.targets.ms.push_back(5);
  }
  data.validation = data.training;
  use_one_thread_per_fit();
  const auto fit =
      make_graph_fit(data, {.layers = 3, .width = 19, .readout_of = readout_of}, core::Random(2));
  for (int epoch = 0; epoch < 20; ++epoch) fit->run_epoch(1e-3);
  fit->keep();
  const auto torch = fit->outputs(data.training.graphs);

  predict::GraphNetwork::Parts parts;
  parts.features = kFeatures;
  parts.inputs = {.mean = std::vector(2, 0.0), .scale = std::vector(2, 1.0)};
  parts.layers = fit->layers();
  parts.readout_of = readout_of;
  parts.readout = fit->readout();
  parts.sum_scale = 0.2;
  parts.output = data.output;
  const auto network = predict::GraphNetwork::make(std::move(parts)).value();
  const auto ours = network.predict(rows.graphs).value();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_GT(ours[i], 0.1) << "where clamping does nothing";
    EXPECT_NEAR(ours[i], static_cast<double>(torch[i]), 1e-5 * std::abs(ours[i])) << i;
  }
}

TEST(GraphNetworkTraining, AtWorkGivesWhatLibtorchGives) {
  expect_the_same_at_work(predict::ReadoutOf::graph);
  expect_the_same_at_work(predict::ReadoutOf::nodes);
}

TEST(GraphNetworkTraining, RefusesGraphsThatAreNone) {
  Surroundings here;
  Rows rows(3, 1);
  const auto complaint = [&] {
    return train_graph_network(rows.set(), {}, here.context()).error().message;
  };
  rows.ms[1] = 0;
  EXPECT_THAT(complaint(), HasSubstr("graph 1: 0 is no positive number"));
  rows.ms[1] = 1;
  rows.graphs[2].edges.push_back({.from = 0, .to = 50});
  EXPECT_THAT(complaint(), HasSubstr("graph 2: the edge from 0 to 50"));
  rows.ms.pop_back();
  EXPECT_THAT(complaint(), HasSubstr("3 graphs and 2 times"));
}

}  // namespace
}  // namespace fleetfit::train
