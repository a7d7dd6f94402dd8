#include "fleetfit/cost/kernel_edges.h"

#include <set>
#include <utility>

namespace fleetfit::cost {
namespace {

constexpr int kNone = -1;

std::vector<int> kernel_of_nodes(const graph::Graph& graph, std::span<const Kernel> kernels) {
  std::vector<int> owner(graph.nodes.size(), kNone);
  for (std::size_t k = 0; k < kernels.size(); ++k)
    for (const int node : kernels[k].nodes)
      owner[static_cast<std::size_t>(node)] = static_cast<int>(k);
  return owner;
}

}  // namespace

std::vector<KernelEdge> kernel_edges(const graph::Graph& graph, std::span<const Kernel> kernels) {
  const auto owner = kernel_of_nodes(graph, kernels);
  std::vector<std::set<int>> makers(graph.tensors.size());  // kernels behind each tensor
  std::set<std::pair<int, int>> edges;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::set<int> read;
    for (const auto id : graph.nodes[n].inputs)
      if (id != graph::kNoTensor)
        read.insert(makers[static_cast<std::size_t>(id)].begin(),
                    makers[static_cast<std::size_t>(id)].end());
    if (owner[n] != kNone) {
      for (const int from : read)
        if (from != owner[n]) edges.emplace(from, owner[n]);
      read = {owner[n]};
    }
    for (const auto id : graph.nodes[n].outputs)
      if (id != graph::kNoTensor) makers[static_cast<std::size_t>(id)] = read;
  }
  std::vector<KernelEdge> sorted;
  for (const auto& [from, to] : edges) sorted.push_back({.from = from, .to = to});
  return sorted;
}

}  // namespace fleetfit::cost
