// A network of each family of the zoo, made small, on the engine against the plain interpreter.
#include <gtest/gtest.h>

#include "tests/engine/compare.h"
#include "tests/engine/small_networks.h"
#include "tests/sanitized.h"

namespace fleetfit::engine {
namespace {

/// How much the result differs where every number of the input differs by a millionth. Some deep
/// networks with random weights make a lot of rounding.
double sensitivity(const graph::Graph& graph, const std::vector<graph::Value>& inputs,
                   const graph::Value& expected) {
  constexpr float kMillionth = 1e-6F;
  auto values =
      std::vector<float>(inputs[0].data.as<float>().begin(), inputs[0].data.as<float>().end());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] *= 1 + (i % 2 == 0 ? kMillionth : -kMillionth);
  auto changed = inputs;
  changed[0].data = graph::TensorData::copy(values);
  return relative_difference(expected, graph::evaluate(graph, changed).value()[0]);
}

void expect_as_interpreted(const graph::Graph& graph, const std::vector<EngineOptions>& ways) {
  const auto inputs = graph::random_inputs(graph, 7);
  const auto expected = graph::evaluate(graph, inputs).value();
  const double tolerance = std::max(1e-4, 10 * sensitivity(graph, inputs, expected[0]));
  for (const EngineOptions& options : ways) {
    const auto actual = run_on_engine(graph, inputs, options);
    ASSERT_TRUE(actual) << actual.error().message;
    ASSERT_EQ(actual->size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(relative_difference(expected[i], (*actual)[i]), tolerance) << options.threads;
    }
  }
}

class NetworkFamilies : public testing::TestWithParam<std::string> {};

TEST_P(NetworkFamilies, GiveWhatTheInterpreterGives) {
  std::vector<EngineOptions> ways{
      {.choosing = Choosing::fixed},
      {.threads = 2, .library = Library::xnnpack, .choosing = Choosing::fixed}};
  if (!kSanitized) {  // where every run takes many times as long
    ways.push_back({.threads = 2, .choosing = Choosing::measured});
    ways.push_back({.library = Library::reference});
  }
  expect_as_interpreted(small_network(GetParam()).value(), ways);
}

INSTANTIATE_TEST_SUITE_P(Zoo, NetworkFamilies, testing::ValuesIn(one_of_each_family()), test_name);

}  // namespace
}  // namespace fleetfit::engine
