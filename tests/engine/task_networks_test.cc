// Networks for waves, words and scenes: written as ONNX, read with a batch, run on the engine.
#include "fleetfit/graph/task_networks.h"

#include <gtest/gtest.h>

#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/passes.h"
#include "tests/core/temporary_folder.h"
#include "tests/engine/compare.h"

namespace fleetfit::engine {
namespace {

using graph::Graph;

Graph read_with_batch(const Graph& network, std::int64_t batch) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "network.onnx";
  EXPECT_TRUE(graph::export_onnx_file(network, file));
  return graph::import_model(file, {.batch = batch}).value().graph;
}

void expect_as_interpreted(const Graph& network) {
  for (const std::int64_t batch : {1, 3}) {
    auto read = read_with_batch(network, batch);
    ASSERT_EQ(read.tensor(read.inputs[0]).shape->front(), batch);
    const auto inputs = graph::random_inputs(read, 5);
    const auto expected = graph::evaluate(read, inputs).value();
    const auto actual = run_on_engine(read, inputs, {.choosing = Choosing::fixed});
    ASSERT_TRUE(actual) << actual.error().message;
    EXPECT_EQ((*actual)[0].shape.front(), batch);
    EXPECT_LT(relative_difference(expected[0], (*actual)[0]), 1e-4) << batch;
  }
}

TEST(TaskNetworks, M5RunsOnTheEngine) {
  expect_as_interpreted(graph::build_m5({.length = 1100, .channels = 8, .stride = 4}).value());
}

TEST(TaskNetworks, TextRnnRunsOnTheEngine) {
  for (const std::int64_t stride : {1, 3})
    expect_as_interpreted(
        graph::build_text_rnn(
            {.length = 10, .vocabulary = 50, .embedding = 8, .hidden = 12, .stride = stride})
            .value());
}

TEST(TaskNetworks, SmallYoloRunsOnTheEngine) {
  expect_as_interpreted(graph::build_small_yolo({.size = 32, .width = 0.25}).value());
}

}  // namespace
}  // namespace fleetfit::engine
