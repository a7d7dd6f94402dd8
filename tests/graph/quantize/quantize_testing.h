#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/quantize.h"
#include "tests/graph/passes/pass_testing.h"

namespace fleetfit::graph {

inline Graph prepared(const Graph& graph) {
  auto result = prepare_for_quantization(graph);
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

/// Ranges from random inputs, found with the interpreter.
inline Ranges observed_ranges(const Graph& graph, const QuantizeOptions& options = {}) {
  auto probe = graph;
  probe.outputs = tensors_to_observe(graph, options);
  RangeCollector collector;
  for (const std::uint64_t seed : {7, 8}) {
    const auto values = evaluate(probe, random_inputs(graph, seed));
    if (!values) throw std::runtime_error(values.error().message);
    for (std::size_t i = 0; i < values->size(); ++i)
      collector.observe(probe.outputs[i], (*values)[i].data.as<float>());
  }
  return collector.ranges();
}

inline Ranges made_up_ranges(const Graph& graph) {
  Ranges ranges;
  for (const auto id : tensors_to_observe(graph)) ranges[id] = {-1, 3};
  return ranges;
}

inline Graph quantized(const Graph& prepared, const QuantizeOptions& options = {}) {
  auto result = quantize(prepared, observed_ranges(prepared, options), options);
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

/// Power of the values over power of the difference, in decibels, of the first outputs.
inline double signal_to_noise(const Graph& exact, const Graph& rounded) {
  const auto inputs = random_inputs(exact, 7);
  const auto want = evaluate(exact, inputs).value();
  const auto got = evaluate(rounded, inputs);
  if (!got) throw std::runtime_error(got.error().message);
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(elements(want[0].shape)); ++i) {
    signal += std::pow(number_at(want[0], i), 2);
    noise += std::pow(number_at(want[0], i) - number_at(got->front(), i), 2);
  }
  return 10 * std::log10(signal / noise);
}

inline const Node& node_named(const Graph& graph, std::string_view name) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const Node& node) { return node.name == name; });
  if (found == graph.nodes.end()) throw std::runtime_error("no node " + std::string(name));
  return *found;
}

/// The node that makes an input of another.
inline const Node& maker_of(const Graph& graph, TensorId id) {
  return graph.nodes.at(static_cast<std::size_t>(producers(graph)[static_cast<std::size_t>(id)]));
}

/// Values of a constant input of a node.
inline std::vector<double> constant_input(const Graph& graph, const Node& node, std::size_t i) {
  return constant_numbers(graph, node.inputs.at(i)).value();
}

inline std::size_t count_of(const std::vector<std::string>& types, std::string_view type) {
  return static_cast<std::size_t>(std::count(types.begin(), types.end(), type));
}

}  // namespace fleetfit::graph
