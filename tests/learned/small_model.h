#pragma once

#include <cmath>
#include <vector>

#include "fleetfit/learned/model.h"

/// A model whose networks are linear and written by hand, so that what is best can be worked out.
namespace fleetfit::learned {

inline predict::DenseLayer zero_layer(std::size_t inputs, std::size_t outputs) {
  return {.inputs = inputs,
          .outputs = outputs,
          .weights = std::vector<float>(inputs * outputs),
          .bias = std::vector<float>(outputs)};
}

/// Gives each operator of nasbench201 the same number wherever it stands, in output `output`.
inline DesignNetwork::Parts operator_sums(const std::vector<std::vector<float>>& per_output) {
  const DesignColumns columns(**space::find_space("nasbench201"));
  const std::size_t outputs = per_output.size();
  DesignNetwork::Parts parts{.layers = {zero_layer(columns.count(), outputs)},
                             .skip = zero_layer(columns.count(), outputs)};
  for (std::size_t edge = 0; edge < 6; ++edge)
    for (std::size_t op = 0; op < 5; ++op)
      for (std::size_t output = 0; output < outputs; ++output)
        parts.skip.weights[(edge * 5 + op) * outputs + output] = per_output[output][op];
  return parts;
}

/// Two features: the latencies of two reference designs.
inline DeviceInputs two_references() {
  return DeviceInputs::make(
             {.columns = {{.name = "ref:a", .is_reference = true, .is_logarithm = true},
                          {.name = "ref:b", .is_reference = true, .is_logarithm = true}},
              .covariance = {1, 0.5, 0.5, 1},
              .familiarity = {0.1, 0, 0, 0.1},
              .usual_distance = 0.1})
      .value();
}

/// ln latency = level + 0.1 for each 1x1 convolution + (0.3 + 0.1 x second input) for each 3x3;
/// accuracy = sinh(0.1 for each 1x1, 0.25 for each 3x3 convolution), without optimizer networks.
inline Model::Parts small_parts(std::size_t members = 2) {
  const auto* const space = *space::find_space("nasbench201");
  const std::size_t columns = DesignColumns(*space).count();
  Model::Parts parts{.space = space, .device = two_references()};
  CostModel latency{.name = "latency_ms", .margin = 2.5, .noise = 0.02, .usual_spread = 0.02};
  for (std::size_t i = 0; i < members; ++i) {
    latency.members.push_back(
        {.network = DesignNetwork::make(
                        operator_sums({{0, 0, 0.1F, 0.3F, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 0.1F, 0}}),
                        columns)
                        .value(),
         .typical = {0.4F, 0, 0.1F}});
  }
  parts.costs.push_back(std::move(latency));
  parts.accuracy.members.push_back(
      DesignNetwork::make(operator_sums({{0, 0, 0.1F, 0.25F, 0}}), columns).value());
  parts.lineage = {.method = "supervised", .devices = {"x", "y"}, .designs = 3, .seed = 1};
  return parts;
}

/// An optimizer network that gives all choices the same probability.
inline OptimizerNetwork::Parts undecided_parts(const space::Space& space, std::size_t inputs,
                                               std::size_t width = 4) {
  OptimizerNetwork::Parts parts{.context = {zero_layer(inputs, width)},
                                .hidden = zero_layer(width, width)};
  for (const auto& gene : space.genes()) {
    parts.genes.push_back({.place = zero_layer(1, width),
                           .choices = zero_layer(gene.choices.size(), width),
                           .out = zero_layer(width, gene.choices.size())});
  }
  return parts;
}

}  // namespace fleetfit::learned
