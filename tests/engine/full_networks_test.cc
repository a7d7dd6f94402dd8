// One network of each family as published, on the engine against the plain interpreter.
#include <gtest/gtest.h>

#include "tests/engine/compare.h"
#include "tests/engine/small_networks.h"

namespace fleetfit::engine {
namespace {

class FullNetworks : public testing::TestWithParam<std::string> {};

TEST_P(FullNetworks, GiveWhatTheInterpreterGives) {
  const auto graph = graph::build_zoo_network(GetParam()).value();
  const auto inputs = graph::random_inputs(graph, 7);
  const auto expected = graph::evaluate(graph, inputs).value();
  for (const int threads : {1, 2}) {
    for (const auto choosing : {Choosing::fixed, Choosing::measured}) {
      const auto actual = run_on_engine(graph, inputs, {.threads = threads, .choosing = choosing});
      ASSERT_TRUE(actual) << actual.error().message;
      EXPECT_LT(relative_difference(expected[0], (*actual)[0]), 1e-4) << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, FullNetworks, testing::ValuesIn(one_of_each_family()), test_name);

}  // namespace
}  // namespace fleetfit::engine
