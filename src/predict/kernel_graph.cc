#include "fleetfit/predict/kernel_graph.h"

#include <algorithm>

#include "fleetfit/cost/kernels.h"

namespace fleetfit::predict {
namespace {

// Of a kind that is not known the last, which is "other".
std::size_t index_of_kind(std::string_view kind) {
  const auto kinds = cost::kernel_kinds();
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  return static_cast<std::size_t>(std::min(found, kinds.end() - 1) - kinds.begin());
}

}  // namespace

std::vector<std::string> kernel_graph_features() {
  std::vector<std::string> names;
  for (const auto kind : cost::kernel_kinds()) names.push_back("kind " + std::string(kind));
  const auto& generic = cost::generic_feature_names();
  names.insert(names.end(), generic.begin(), generic.end());
  return names;
}

Result<NodeGraph> kernel_graph(const graph::Graph& graph, const cost::KernelPlan& plan) {
  FLEETFIT_ASSIGN(const auto features, cost::features_of(graph, plan.kernels));
  const std::size_t kinds = cost::kernel_kinds().size();
  const std::size_t generic = cost::generic_feature_names().size();
  NodeGraph result{.features = kinds + generic};
  result.nodes.resize(features.size() * result.features);
  for (std::size_t k = 0; k < features.size(); ++k) {
    double* const node = &result.nodes[k * result.features];
    node[index_of_kind(features[k].kind)] = 1;
    std::copy_n(features[k].values.begin(), generic, node + kinds);
  }
  for (const auto& edge : cost::kernel_edges(graph, plan.kernels))
    result.edges.push_back({.from = edge.from, .to = edge.to});
  return result;
}

}  // namespace fleetfit::predict
