#include <array>
#include <cmath>

#include "fleetfit/cost/cost.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/learned/network_latency.h"

namespace fleetfit::learned {
namespace {

constexpr auto kNames = std::to_array<std::string_view>(
    {"conv_flops", "conv_bytes", "conv_weights", "conv_count", "depthwise_flops", "depthwise_bytes",
     "depthwise_weights", "depthwise_count", "dense_flops", "dense_bytes", "dense_weights",
     "dense_count", "other_bytes", "other_count", "int8_share"});

struct Work {
  double flops = 0;
  double bytes = 0;
  double weights = 0;
  double count = 0;

  void add(const cost::NodeCost& node) {
    flops += static_cast<double>(node.flops);
    bytes += static_cast<double>(node.input_bytes + node.output_bytes);
    weights += static_cast<double>(node.weight_bytes);
    ++count;
  }
};

struct WorkByKind {
  Work conv;
  Work depthwise;
  Work dense;
  Work other;

  Work& of(std::string_view kind) {
    if (kind == "depthwise_conv2d") return depthwise;
    if (kind.ends_with("conv2d")) return conv;
    if (kind == "fully_connected" || kind == "matmul") return dense;
    return other;
  }
};

/// Thousands, so that nothing and little are near to each other.
double size_of(double amount) { return std::log1p(amount / 1000); }

void append(const Work& work, std::vector<double>& features) {
  for (const double amount : {work.flops, work.bytes, work.weights})
    features.push_back(size_of(amount));
  features.push_back(std::log1p(work.count));
}

}  // namespace

std::span<const std::string_view> network_feature_names() { return kNames; }

Result<std::vector<double>> network_features(const graph::Graph& graph, double int8_share) {
  FLEETFIT_ASSIGN(const auto cost, cost::count_cost(graph));
  WorkByKind work;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto kind = cost::plain_kind(graph, graph.nodes[i]);
    if (cost.nodes[i] && kind != "reshape") work.of(kind).add(*cost.nodes[i]);
  }
  std::vector<double> features;
  append(work.conv, features);
  append(work.depthwise, features);
  append(work.dense, features);
  features.push_back(size_of(work.other.bytes));
  features.push_back(std::log1p(work.other.count));
  features.push_back(int8_share);
  return features;
}

}  // namespace fleetfit::learned
