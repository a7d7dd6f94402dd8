// Whole networks on XNNPACK's kernels against the interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "fleetfit/graph/import.h"
#include "fleetfit/graph/zoo.h"
#include "tests/engine/compare.h"
#include "tests/engine/one_node.h"
#include "tests/shared_data.h"

namespace fleetfit::engine {
namespace {

class XnnpackNetworks : public testing::TestWithParam<std::string> {};

TEST_P(XnnpackNetworks, GiveWhatTheInterpreterGives) {
  const auto graph = graph::build_zoo_network(GetParam(), {.width = 0.5, .image = 96}).value();
  const auto inputs = graph::random_inputs(graph, 7);
  const auto expected = graph::evaluate(graph, inputs).value();
  for (const int threads : {1, 2}) {
    const auto actual = run_on_engine(
        graph, inputs,
        {.threads = threads, .library = Library::xnnpack, .choosing = Choosing::fixed});
    ASSERT_TRUE(actual) << actual.error().message;
    EXPECT_LT(relative_difference(expected[0], (*actual)[0]), 1e-4) << threads;
  }
}

TEST_P(XnnpackNetworks, RunOnItsKernelsAlone) {
  const auto graph = graph::build_zoo_network(GetParam(), {.width = 0.5, .image = 96}).value();
  const auto program =
      Program::prepare(graph, {.library = Library::xnnpack, .choosing = Choosing::fixed}).value();
  for (const auto& step : program.step_times()) {
    if (step.type == "Transpose") continue;  // of the image that comes in
    EXPECT_TRUE(step.kernel.starts_with("xnnpack")) << step.name << ": " << step.kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, XnnpackNetworks, testing::Values("mobilenet_v2", "squeezenet1_1"),
                         [](const auto& test) { return test.param; });

class XnnpackQuantized : public testing::TestWithParam<std::string> {};

TEST_P(XnnpackQuantized, GivesWhatTheInterpreterGives) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "no shared data";
  const auto model = graph::import_model(*data / "models/tflite" / (GetParam() + ".tflite"));
  ASSERT_TRUE(model) << model.error().message;
  const auto inputs = graph::random_inputs(model->graph, 7);
  const auto expected = graph::evaluate(model->graph, inputs).value();
  for (const int threads : {1, 2}) {
    const auto actual = run_on_engine(
        model->graph, inputs,
        {.threads = threads, .library = Library::xnnpack, .choosing = Choosing::fixed});
    ASSERT_TRUE(actual) << actual.error().message;
    ASSERT_EQ((*actual)[0].dtype, DType::u8);
    EXPECT_LE(largest_difference<std::uint8_t>(expected[0], (*actual)[0]), 2) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, XnnpackQuantized,
                         testing::Values("coral_mobilenet_v1_0.25_128_quant",
                                         "coral_mobilenet_v1_0.5_160_quant"),
                         [](const auto& test) {
                           auto name = test.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace fleetfit::engine
