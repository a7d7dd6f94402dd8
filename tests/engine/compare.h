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

}  // namespace fleetfit::engine
