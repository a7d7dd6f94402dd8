// Networks quantized after training, on the engine against the interpreter and against themselves
// in floats.
#include <gtest/gtest.h>

#include <cmath>

#include "fleetfit/engine/calibrate.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/zoo.h"
#include "tests/engine/compare.h"

namespace fleetfit::engine {
namespace {

/// How much larger the values are than their differences, in decibels.
double signal_to_noise(const graph::Value& expected, const graph::Value& actual) {
  const auto a = expected.data.as<float>();
  const auto b = actual.data.as<float>();
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    signal += static_cast<double>(a[i]) * a[i];
    noise += std::pow(static_cast<double>(a[i]) - b[i], 2);
  }
  return 10 * std::log10(signal / std::max(noise, 1e-30));
}

class QuantizedNetworks : public testing::TestWithParam<std::string> {};

TEST_P(QuantizedNetworks, GiveWhatTheInterpreterGives) {
  // As wide as published, so that roundings even out.
  const auto graph = graph::build_zoo_network(GetParam(), {.classes = 100, .image = 96}).value();
  const auto quantized = quantize_on(graph, random_samples(graph, 2));
  ASSERT_TRUE(quantized) << quantized.error().message;
  const auto inputs = graph::random_inputs(graph, 1);
  const auto expected = graph::evaluate(*quantized, inputs).value();
  const auto actual = run_on_engine(*quantized, inputs, {.threads = 2});
  ASSERT_TRUE(actual) << actual.error().message;
  // Roundings that differ by one quantum here and there.
  EXPECT_GT(signal_to_noise(expected[0], (*actual)[0]), 20);
  const auto exact = graph::evaluate(graph, inputs).value();
  EXPECT_GT(signal_to_noise(exact[0], (*actual)[0]), 10);
}

INSTANTIATE_TEST_SUITE_P(Zoo, QuantizedNetworks,
                         testing::Values("mobilenet_v2", "squeezenet1_1", "efficientnet_b0",
                                         "shufflenet_v2_x1_0", "mobilenet_v3_small"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace fleetfit::engine
