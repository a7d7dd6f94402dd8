#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fleetfit/engine/program.h"
#include "fleetfit/graph/evaluate.h"

namespace fleetfit::engine {

/// The largest difference of two tensors of floats, relative to the largest value of the first.
inline double relative_difference(const graph::Value& expected, const graph::Value& actual) {
  const auto a = expected.data.as<float>();
  const auto b = actual.data.as<float>();
  if (a.size() != b.size()) return 1e30;
  double scale = 0;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    scale = std::max<double>(scale, std::abs(a[i]));
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    worst = std::isnan(difference) ? 1e30 : std::max(worst, difference);
  }
  return worst / std::max(scale, 1e-30);
}

/// Runs a graph on the engine with inputs from a seed.
inline Result<std::vector<graph::Value>> run_on_engine(const graph::Graph& graph,
                                                       const std::vector<graph::Value>& inputs,
                                                       const EngineOptions& options) {
  auto program = Program::prepare(graph, options);
  if (!program) return tl::unexpected(program.error());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (auto status = program->set_input(i, inputs[i]); !status)
      return tl::unexpected(status.error());
  }
  if (auto status = program->run(); !status) return tl::unexpected(status.error());
  std::vector<graph::Value> outputs;
  for (std::size_t i = 0; i < program->outputs().size(); ++i)
    outputs.push_back(program->output_value(i));
  return outputs;
}

/// How much two tensors may differ: floats relative to the largest, quantized numbers by quanta,
/// all else not at all.
struct Likeness {
  double relative = 1e-4;
  int quanta = 1;
};

template <class T>
int most_quanta(const graph::Value& expected, const graph::Value& actual) {
  const auto a = expected.data.as<T>();
  const auto b = actual.data.as<T>();
  int worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i])));
  return worst;
}

inline void expect_alike(const graph::Value& expected, const graph::Value& actual,
                         const Likeness& likeness = {}) {
  ASSERT_EQ(expected.dtype, actual.dtype);
  ASSERT_EQ(expected.shape, actual.shape);
  ASSERT_EQ(expected.data.size_bytes(), actual.data.size_bytes());
  if (expected.data == actual.data) return;
  if (expected.dtype == graph::DType::f32) {
    EXPECT_LT(relative_difference(expected, actual), likeness.relative);
  } else if (expected.quantization && expected.dtype == graph::DType::u8) {
    EXPECT_LE(most_quanta<std::uint8_t>(expected, actual), likeness.quanta);
  } else if (expected.quantization && expected.dtype == graph::DType::i8) {
    EXPECT_LE(most_quanta<std::int8_t>(expected, actual), likeness.quanta);
  } else {
    FAIL() << "other numbers of " << graph::to_string(expected.dtype);
  }
}

/// The engine must give what the interpreter gives, with every library and way of choosing, on one
/// thread and on two.
inline void expect_as_evaluated(const graph::Graph& graph, const Likeness& likeness = {}) {
  const auto inputs = graph::random_inputs(graph, 7);
  const auto expected = graph::evaluate(graph, inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  const std::vector<EngineOptions> ways{
      {.choosing = Choosing::fixed},
      {.threads = 2, .choosing = Choosing::fixed},
      {.threads = 2, .choosing = Choosing::measured},
      {.threads = 2, .library = Library::xnnpack, .choosing = Choosing::fixed},
      {.library = Library::reference}};
  for (const EngineOptions& options : ways) {
    SCOPED_TRACE(testing::Message() << "library " << static_cast<int>(options.library) << " on "
                                    << options.threads << " threads");
    const auto actual = run_on_engine(graph, inputs, options);
    ASSERT_TRUE(actual) << actual.error().message;
    ASSERT_EQ(actual->size(), expected->size());
    for (std::size_t i = 0; i < expected->size(); ++i)
      expect_alike((*expected)[i], (*actual)[i], likeness);
  }
}

}  // namespace fleetfit::engine
