#include <fmt/format.h>

#include <array>
#include <vector>

#include "fleetfit/graph/net_builder.h"
#include "space/all_spaces.h"

namespace fleetfit::space {
namespace {

using graph::NetBuilder;
using graph::TensorId;

constexpr std::int64_t kSmallImage = 32;
constexpr std::int64_t kSmallClasses = 10;
constexpr int kCellsOfStage = 5;
constexpr std::array<std::int64_t, 3> kStageChannels = {16, 32, 64};

struct Edge {
  std::size_t from;
  std::size_t to;
};
constexpr std::size_t kNodes = 4;
/// Sorted by the node to which they lead.
constexpr std::array<Edge, 6> kEdges = {{{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}}};

enum class Operation : std::uint8_t { none, skip, conv1x1, conv3x3, average_pool };

Operation operation(Design design, std::size_t edge) {
  return static_cast<Operation>(design[edge]);
}

std::string edge_name(const Edge& edge) { return fmt::format("edge {}>{}", edge.from, edge.to); }

std::vector<Gene> edge_genes() {
  std::vector<Gene> genes;
  for (const Edge& edge : kEdges)
    genes.push_back({.name = edge_name(edge), .choices = {"0", "1", "2", "3", "4"}});
  return genes;
}

std::vector<Slot> edge_slots() {
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < kEdges.size(); ++i) {
    slots.push_back({.name = edge_name(kEdges[i]),
                     .genes = {i},
                     .kinds = {"none", "skip", "conv1x1", "conv3x3", "avg-pool3x3"}});
  }
  return slots;
}

TensorId relu_conv_bn(NetBuilder& net, TensorId x, const graph::ConvSpec& spec) {
  return net.conv_bn(net.activate(x, graph::kRelu), spec);
}

/// What an edge makes of its input; `none` has no edge.
TensorId apply(NetBuilder& net, Operation operation, TensorId x) {
  switch (operation) {
    case Operation::none:
    case Operation::skip:
      return x;
    case Operation::conv1x1:
      return relu_conv_bn(net, x, {.out = net.channels(x)});
    case Operation::conv3x3:
      return relu_conv_bn(net, x, {.out = net.channels(x), .kernel = 3});
    case Operation::average_pool:
      return net.average_pool(x, {.kernel = 3, .stride = 1, .pad = 1, .count_include_pad = false});
  }
  return x;
}

/// The sum of the edges that lead to a node; zeros if there is none.
TensorId node_sum(NetBuilder& net, const std::vector<TensorId>& edges, TensorId cell_input) {
  if (edges.empty()) return net.scale(cell_input, 0);
  TensorId sum = edges.front();
  for (std::size_t i = 1; i < edges.size(); ++i) sum = net.add(sum, edges[i]);
  return sum;
}

/// Works all paths out, dead ones too: whether to remove them is the runtime's affair.
TensorId build_cell(NetBuilder& net, Design design, TensorId x) {
  std::array<TensorId, kNodes> nodes{x};
  for (std::size_t node = 1; node < kNodes; ++node) {
    std::vector<TensorId> edges;
    for (std::size_t i = 0; i < kEdges.size(); ++i) {
      if (kEdges[i].to == node && operation(design, i) != Operation::none)
        edges.push_back(apply(net, operation(design, i), nodes[kEdges[i].from]));
    }
    nodes[node] = node_sum(net, edges, x);
  }
  return nodes.back();
}

/// Halves the resolution between stages.
TensorId residual_block(NetBuilder& net, TensorId x, std::int64_t out) {
  TensorId y = relu_conv_bn(net, x, {.out = out, .kernel = 3, .stride = 2});
  y = relu_conv_bn(net, y, {.out = out, .kernel = 3});
  return net.add(net.conv(net.average_pool(x, {.kernel = 2, .stride = 2}), {.out = out}), y);
}

class NasBench201 final : public Space {
 public:
  NasBench201()
      : Space({.name = "nasbench201",
               .line = "cells of six edges with five operations each (Dong and Yang), CIFAR-10",
               .columns = {"ops"},
               .dead_paths = DeadPaths::possible},
              edge_genes(), edge_slots()) {}

  SlotSet live_slots(Design design) const override {
    std::array<bool, kNodes> has_input{true};
    std::array<bool, kNodes> has_use{};
    has_use.back() = true;
    const auto is_there = [&](std::size_t edge) {
      return operation(design, edge) != Operation::none;
    };
    // Forwards and backwards along the edges, which are sorted by the node that they lead to.
    for (std::size_t i = 0; i < kEdges.size(); ++i)
      has_input[kEdges[i].to] |= is_there(i) && has_input[kEdges[i].from];
    for (std::size_t i = kEdges.size(); i-- > 0;)
      has_use[kEdges[i].from] |= is_there(i) && has_use[kEdges[i].to];
    SlotSet live;
    for (std::size_t i = 0; i < kEdges.size(); ++i)
      live[i] = is_there(i) && has_input[kEdges[i].from] && has_use[kEdges[i].to];
    return live;
  }

 protected:
  Result<graph::Graph> build(Design design) const override {
    return network_on_image(name(), kSmallImage, [&](NetBuilder& net, TensorId x) {
      x = net.conv_bn(x, {.out = kStageChannels.front(), .kernel = 3});
      for (const auto channels : kStageChannels) {
        if (channels != net.channels(x)) x = residual_block(net, x, channels);
        for (int i = 0; i < kCellsOfStage; ++i) x = build_cell(net, design, x);
      }
      x = net.activate(net.batch_norm(x), graph::kRelu);
      return net.linear(net.flatten(net.global_average_pool(x)), kSmallClasses);
    });
  }
};

}  // namespace

std::unique_ptr<const Space> make_nasbench201() { return std::make_unique<NasBench201>(); }

}  // namespace fleetfit::space
