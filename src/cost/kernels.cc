#include "fleetfit/cost/kernels.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cost/convolution_shape.h"
#include "fleetfit/graph/operator_facts.h"

namespace fleetfit::cost {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Node;
using graph::TensorId;

constexpr std::string_view kKinds[] = {
    "conv2d",          "winograd", "grouped_conv2d", "depthwise_conv2d", "transposed_conv2d",
    "fully_connected", "matmul",   "normalization",  "softmax",          "mean",
    "reduce",          "pooling",  "resize",         "gather",           "transpose",
    "concat",          "split",    "padding",        "elementwise",      "quantize",
    "reshape",         "other"};

std::string_view convolution_kind(const Graph& graph, const Node& node) {
  const auto shape = convolution_shape(graph, node);
  if (!shape || shape->groups == 1) return "conv2d";
  return shape->input_channels == shape->groups ? "depthwise_conv2d" : "grouped_conv2d";
}

const Node* maker_of(const Graph& graph, TensorId id) {
  const auto made = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return std::ranges::find(node.outputs, id) != node.outputs.end();
  });
  return made == graph.nodes.end() ? nullptr : &*made;
}

bool is_static(const Graph& graph, TensorId id) {
  if (id == kNoTensor || graph.tensor(id).is_constant()) return true;
  const Node* maker = maker_of(graph, id);
  return maker != nullptr && !maker->inputs.empty() &&
         !std::holds_alternative<graph::Unknown>(maker->op) &&
         std::ranges::all_of(maker->inputs, [&](TensorId in) { return is_static(graph, in); });
}

constexpr int kNone = -1;

std::vector<int> kernel_of_nodes(const Graph& graph, std::span<const Kernel> kernels) {
  std::vector<int> owner(graph.nodes.size(), kNone);
  for (std::size_t k = 0; k < kernels.size(); ++k)
    for (const int node : kernels[k].nodes)
      owner[static_cast<std::size_t>(node)] = static_cast<int>(k);
  return owner;
}

std::vector<int> sorted(std::vector<int> nodes) {
  std::ranges::sort(nodes);
  return nodes;
}

}  // namespace

std::span<const std::string_view> kernel_kinds() { return kKinds; }

std::string_view plain_kind(const Graph& graph, const Node& node) {
  const auto kind = kernel_kind(node.op);
  if (kind == "conv2d") return convolution_kind(graph, node);
  if (kind != "fully_connected") return kind;
  // A product is a layer only with weights that are known beforehand.
  const bool has_weights =
      node.inputs.size() > 1 && node.inputs[1] != kNoTensor && is_static(graph, node.inputs[1]);
  return has_weights ? kind : "matmul";
}

std::vector<KernelEdge> kernel_edges(const Graph& graph, std::span<const Kernel> kernels) {
  const auto owner = kernel_of_nodes(graph, kernels);
  std::vector<std::set<int>> makers(graph.tensors.size());  // kernels behind each tensor
  std::set<std::pair<int, int>> edges;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::set<int> read;
    for (const auto id : graph.nodes[n].inputs)
      if (id != kNoTensor)
        read.insert(makers[static_cast<std::size_t>(id)].begin(),
                    makers[static_cast<std::size_t>(id)].end());
    if (owner[n] != kNone) {
      for (const int from : read)
        if (from != owner[n]) edges.emplace(from, owner[n]);
      read = {owner[n]};
    }
    for (const auto id : graph.nodes[n].outputs)
      if (id != kNoTensor) makers[static_cast<std::size_t>(id)] = read;
  }
  std::vector<KernelEdge> all;
  for (const auto& [from, to] : edges) all.push_back({.from = from, .to = to});
  return all;
}

KernelComparison compare_kernels(std::span<const Kernel> deduced,
                                 std::span<const ProfiledKernel> ran) {
  KernelComparison result{.deduced = static_cast<int>(deduced.size()),
                          .ran = static_cast<int>(ran.size())};
  std::map<int, std::size_t> ran_in;
  for (std::size_t k = 0; k < ran.size(); ++k) {
    for (const int node : ran[k].kernel.nodes) ran_in.emplace(node, k);
  }
  std::set<std::size_t> seen;
  for (const auto& kernel : deduced) {
    std::set<std::size_t> parts;
    for (const int node : kernel.nodes) {
      if (const auto found = ran_in.find(node); found != ran_in.end()) parts.insert(found->second);
    }
    seen.insert(parts.begin(), parts.end());
    const auto nodes = sorted(kernel.nodes);
    if (parts.size() == 1 && sorted(ran[*parts.begin()].kernel.nodes) == nodes) {
      ++result.alike;
      result.ran_alike.push_back(*parts.begin());
      continue;
    }
    KernelComparison::Difference difference{.deduced = kernel.nodes};
    for (const auto part : parts) difference.ran.push_back(ran[part].kernel.nodes);
    result.differences.push_back(std::move(difference));
  }
  for (std::size_t k = 0; k < ran.size(); ++k) {
    if (!seen.contains(k)) result.differences.push_back({.ran = {ran[k].kernel.nodes}});
  }
  return result;
}

KernelTimes assign_times(std::span<const Kernel> deduced, const MatchedProfile& ran) {
  KernelTimes times{.ms = std::vector<double>(deduced.size(), 0.0)};
  std::map<int, std::size_t> deduced_in;
  for (std::size_t k = 0; k < deduced.size(); ++k) {
    for (const int node : deduced[k].nodes) deduced_in.emplace(node, k);
  }
  for (const auto& kernel : ran.kernels) {
    const auto found = deduced_in.find(kernel.kernel.nodes.front());
    (found == deduced_in.end() ? times.rest_ms : times.ms[found->second]) += kernel.ms;
  }
  for (const auto& entry : ran.unmatched) times.rest_ms += entry.ms;
  return times;
}

}  // namespace fleetfit::cost
