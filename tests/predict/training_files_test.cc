#include "fleetfit/predict/training_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "fleetfit/core/file.h"
#include "fleetfit/predict/dense_network.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<RowSet> two_sets() {
  return {{.name = "conv2d",
           .features = {"flops", "size"},
           .values = {1, 2, 3, 4, 5, 6},
           .ms = {0.5, 0.25, 0.125},
           .fold = {0, 1, 1},
           .folds = 2},
          {.name = "pooling", .features = {"size"}, .values = {7}, .ms = {1}}};
}

TEST(RowSets, AreReadAsTheyWereWritten) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "rows.json";
  ASSERT_TRUE(write_row_sets(file, two_sets()));
  const auto sets = read_row_sets(file).value();
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].name, "conv2d");
  EXPECT_THAT(sets[0].features, ElementsAre("flops", "size"));
  EXPECT_THAT(sets[0].view().x.row(1), ElementsAre(3, 4));
  EXPECT_THAT(sets[0].ms, ElementsAre(0.5, 0.25, 0.125));
  EXPECT_THAT(sets[0].fold, ElementsAre(0, 1, 1));
  EXPECT_EQ(sets[0].folds, 2);
  EXPECT_EQ(sets[1].folds, 0);
}

std::string complaint_about_rows(std::string_view sets) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "rows.json";
  EXPECT_TRUE(core::write_file(
      file, R"({"type": "training-rows", "version": 1, "sets": )" + std::string(sets) + "}"));
  const auto read = read_row_sets(file);
  if (read) return "none";
  EXPECT_EQ(read.error().code, ErrorCode::invalid_input);
  return read.error().message;
}

TEST(RowSets, ThatAreDamagedAreRefusedNamingThePlace) {
  EXPECT_EQ(complaint_about_rows(R"([{"name": "a", "features": ["x"], "rows": [[1]], "ms": [2]}])"),
            "none");
  EXPECT_THAT(complaint_about_rows("7"), HasSubstr("sets"));
  EXPECT_THAT(complaint_about_rows(
                  R"([{"name": "a", "features": ["x"], "rows": [[1], [1, 2]], "ms": [2, 2]}])"),
              HasSubstr("sets[0].rows[1]: expected 1 numbers, one for each feature, found 2"));
  EXPECT_THAT(
      complaint_about_rows(R"([{"name": "a", "features": ["x"], "rows": [[1]], "ms": []}])"),
      HasSubstr("sets[0].ms: expected 1 times"));
  EXPECT_THAT(
      complaint_about_rows(R"([{"name": "a", "features": ["x"], "rows": [[1]], "ms": [0]}])"),
      HasSubstr("sets[0].ms: row 0: 0 is no positive time"));
  EXPECT_THAT(complaint_about_rows(R"([{"name": "a", "features": [], "rows": [[1]], "ms": [1]}])"),
              HasSubstr("sets[0].features: there are none"));
  EXPECT_THAT(complaint_about_rows(R"([{"name": "a", "features": ["x"], "rows": [], "ms": []}])"),
              HasSubstr("sets[0].rows: there are none"));
  EXPECT_THAT(
      complaint_about_rows(
          R"([{"name": "a", "features": ["x"], "rows": [[1]], "ms": [2], "fold": [2], "folds": 2}])"),
      HasSubstr("sets[0].fold[0]"));
  EXPECT_THAT(
      complaint_about_rows(
          R"([{"name": "a", "features": ["x"], "rows": [[1]], "ms": [2]}, {"name": "a", "features": ["x"], "rows": [[1]], "ms": [2]}])"),
      HasSubstr("sets[1]: there are two of the name 'a'"));
}

TEST(TrainedModels, AreReadAsTheyWereWritten) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "models.json";
  auto network =
      DenseNetwork::make({.inputs = {.mean = {0}, .scale = {1}},
                          .layers = {{.inputs = 1, .outputs = 1, .weights = {2}, .bias = {1}}},
                          .output = {.min = 0.1, .max = 100}});
  std::vector<TrainedModel> models;
  models.push_back({.name = "conv2d",
                    .features = {"flops"},
                    .model = std::make_unique<DenseNetwork>(std::move(network).value()),
                    .settings = "layers 0",
                    .validation_percent = 1.5,
                    .epochs = 12,
                    .ended = "patience",
                    .out_of_fold = {1, 2, 3}});
  ASSERT_TRUE(write_trained_models(file, models));
  const auto read = read_trained_models(file).value();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name, "conv2d");
  EXPECT_EQ(read[0].model->predict_one(std::vector{3.0}), 7);
  EXPECT_EQ(read[0].settings, "layers 0");
  EXPECT_EQ(read[0].validation_percent, 1.5);
  EXPECT_EQ(read[0].epochs, 12);
  EXPECT_EQ(read[0].ended, "patience");
  EXPECT_THAT(read[0].out_of_fold, ElementsAre(1, 2, 3));
  EXPECT_THAT(read_row_sets(file).error().message, HasSubstr("expected \"training-rows\""));
}

TEST(GraphSets, AreReadAsTheyWereWritten) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "graphs.json";
  const GraphSet set{.features = {"a", "b"},
                     .names = {"net"},
                     .graphs = {{.features = 2, .nodes = {1, 2, 3, 4}, .edges = {{0, 1}}}},
                     .ms = {5}};
  ASSERT_TRUE(write_graph_set(file, set));
  const auto read = read_graph_set(file).value();
  EXPECT_EQ(read.features, set.features);
  EXPECT_EQ(read.names, set.names);
  EXPECT_EQ(read.graphs[0].nodes, set.graphs[0].nodes);
  EXPECT_EQ(read.graphs[0].edges, set.graphs[0].edges);
  EXPECT_EQ(read.ms, set.ms);
}

std::string complaint_about_graph(std::string_view graph) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "graphs.json";
  EXPECT_TRUE(core::write_file(
      file, R"({"type": "training-graphs", "version": 1, "features": ["x"], "graphs": [)" +
                std::string(graph) + "]}"));
  const auto read = read_graph_set(file);
  return read ? "none" : read.error().message;
}

TEST(GraphSets, ThatAreDamagedAreRefusedNamingThePlace) {
  EXPECT_EQ(complaint_about_graph(R"({"nodes": [[1]], "edges": [], "ms": 1})"), "none");
  EXPECT_THAT(complaint_about_graph(R"({"nodes": [[1, 2]], "edges": [], "ms": 1})"),
              HasSubstr("graphs[0].nodes[0]: expected 1 numbers"));
  EXPECT_THAT(complaint_about_graph(R"({"nodes": [[1]], "edges": [[0, 1]], "ms": 1})"),
              HasSubstr("graphs[0]: the edge from 0 to 1"));
  EXPECT_THAT(complaint_about_graph(R"({"nodes": [[1]], "edges": [[0]], "ms": 1})"),
              HasSubstr("graphs[0].edges[0]: expected the two nodes"));
  EXPECT_THAT(complaint_about_graph(R"({"nodes": [], "edges": [], "ms": 1})"),
              HasSubstr("no node"));
  EXPECT_THAT(complaint_about_graph(R"({"nodes": [[1]], "edges": [], "ms": -1})"),
              HasSubstr("graphs[0].ms: -1 is no positive time"));
  EXPECT_THAT(complaint_about_graph(""), HasSubstr("graphs: there are none"));
}

}  // namespace
}  // namespace fleetfit::predict
