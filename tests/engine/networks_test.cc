// Whole networks on the engine against the plain interpreter.
#include <gtest/gtest.h>

#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/zoo.h"
#include "tests/engine/compare.h"

namespace fleetfit::engine {
namespace {

class Networks : public testing::TestWithParam<std::string> {};

TEST_P(Networks, GiveWhatTheInterpreterGives) {
  auto graph = graph::build_zoo_network(GetParam()).value();
  const auto inputs = graph::random_inputs(graph, 7);
  const auto expected = graph::evaluate(graph, inputs).value();
  for (const int threads : {1, 2}) {
    for (const auto choosing : {Choosing::fixed, Choosing::measured}) {
      const auto actual = run_on_engine(graph, inputs, {.threads = threads, .choosing = choosing});
      ASSERT_TRUE(actual) << actual.error().message;
      ASSERT_EQ(actual->size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LT(relative_difference(expected[i], (*actual)[i]), 1e-4) << threads;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Networks,
                         testing::Values("mobilenet_v2", "squeezenet1_1", "efficientnet_b0",
                                         "shufflenet_v2_x1_0", "mobilenet_v3_small"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace fleetfit::engine
