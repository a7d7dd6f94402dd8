#include "fleetfit/graph/channels.h"

#include <algorithm>
#include <map>

#include "graph/channel_links.h"

namespace fleetfit::graph {
namespace {

std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }

/// Grouped convolutions, depthwise ones aside, of which no whole group could go because one of
/// their ends is pinned.
ThinnedGroups stuck_groups(const Graph& graph, const Channels& channels) {
  ThinnedGroups stuck;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    const auto* conv = std::get_if<Conv>(&node.op);
    if (conv == nullptr || conv->groups == 1 || channels.rank(node.inputs[0]) < 3) continue;
    const bool nchw = conv->layout == Layout::nchw;
    const std::size_t axis = nchw ? 1 : channels.rank(node.inputs[0]) - 1;
    if (channels.extent(node.inputs[0], axis) == conv->groups) continue;
    if (channels.all_pinned(node.inputs[0], axis) || channels.all_pinned(node.outputs[0], axis))
      stuck.insert(n);
  }
  return stuck;
}

/// What is computed from pooled channels until it meets something else again.
std::vector<bool> tensors_of_gates(const Graph& graph) {
  const auto is_static = static_tensors(graph);
  std::vector<bool> gate(graph.tensors.size());
  for (const auto& node : graph.nodes) {
    bool pools =
        std::holds_alternative<GlobalPool>(node.op) || std::holds_alternative<Reduce>(node.op);
    if (!pools) {
      bool any = false;
      pools = std::ranges::all_of(node.inputs, [&](TensorId id) {
        if (id == kNoTensor || is_static[slot(id)]) return true;
        any = true;
        return static_cast<bool>(gate[slot(id)]);
      });
      pools = pools && any;
    }
    for (const auto id : node.outputs) {
      if (id != kNoTensor) gate[slot(id)] = pools;
    }
  }
  return gate;
}

/// Whether a gate's result is multiplied with what it was made from; else the pooled tensor is the
/// way itself, as before a classifier.
bool has_gate(const Graph& graph, const std::vector<bool>& gate) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    const auto* op = std::get_if<Elementwise>(&node.op);
    if (op == nullptr || op->kind != ElementwiseKind::mul) return false;
    return std::ranges::any_of(node.inputs, [&](TensorId id) { return gate[slot(id)]; }) &&
           !gate[slot(node.outputs[0])];
  });
}

}  // namespace

Channels::Channels(const Graph& graph, FreeEnd free) {
  ThinnedGroups thinned;
  for (int round = 0; round < 2; ++round) {
    start(graph, free);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) link_node(graph, n, thinned, *this);
    auto stuck = stuck_groups(graph, *this);
    if (stuck.empty()) break;
    thinned = std::move(stuck);
  }
}

void Channels::start(const Graph& graph, FreeEnd free) {
  first_.assign(graph.tensors.size(), {});
  extents_.assign(graph.tensors.size(), {});
  parent_.clear();
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (!graph.tensors[t].shape) continue;
    for (const auto extent : *graph.tensors[t].shape) {
      first_[t].push_back(static_cast<int>(parent_.size()));
      extents_[t].push_back(static_cast<int>(extent));
      for (std::int64_t i = 0; i < extent; ++i) parent_.push_back(static_cast<int>(parent_.size()));
    }
  }
  pinned_.assign(parent_.size(), false);
  // Batch and pixels of a free end are pinned by the operators that slide over them.
  if (free != FreeEnd::input) {
    for (const auto id : graph.inputs) pin_all(id);
  }
  if (free != FreeEnd::output) {
    for (const auto id : graph.outputs) pin_all(id);
  }
}

int Channels::root(int element) const {
  while (parent_[static_cast<std::size_t>(element)] != element) {
    auto& up = parent_[static_cast<std::size_t>(element)];
    up = parent_[static_cast<std::size_t>(up)];
    element = up;
  }
  return element;
}

std::size_t Channels::rank(TensorId tensor) const { return first_[slot(tensor)].size(); }

int Channels::extent(TensorId tensor, std::size_t axis) const {
  return extents_[slot(tensor)][axis];
}

int Channels::at(TensorId tensor, std::size_t axis, int position) const {
  return first_[slot(tensor)][axis] + position;
}

void Channels::unite(int a, int b) {
  a = root(a);
  b = root(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  parent_[static_cast<std::size_t>(b)] = a;
  if (pinned_[static_cast<std::size_t>(b)]) pinned_[static_cast<std::size_t>(a)] = true;
}

void Channels::pin(TensorId tensor, std::size_t axis) {
  for (int i = 0; i < extent(tensor, axis); ++i)
    pinned_[static_cast<std::size_t>(root(at(tensor, axis, i)))] = true;
}

void Channels::pin_all(TensorId tensor) {
  if (tensor == kNoTensor) return;
  for (std::size_t a = 0; a < rank(tensor); ++a) pin(tensor, a);
}

bool Channels::all_pinned(TensorId tensor, std::size_t axis) const {
  const auto classes = this->axis(tensor, axis);
  return std::ranges::all_of(classes, [&](int c) { return is_pinned(c); });
}

std::vector<int> Channels::axis(TensorId tensor, std::size_t axis) const {
  std::vector<int> classes;
  for (int i = 0; i < extent(tensor, axis); ++i) classes.push_back(root(at(tensor, axis, i)));
  return classes;
}

std::vector<ChannelGroup> shrinkable_groups(const Graph& graph, const Channels& channels) {
  auto gate = tensors_of_gates(graph);
  if (!has_gate(graph, gate)) gate.assign(gate.size(), false);

  std::map<int, std::vector<TensorAxis>> places;
  std::map<int, int> most;  // positions on one axis
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    for (std::size_t a = 0; a < channels.rank(id); ++a) {
      std::map<int, int> here;
      for (const int c : channels.axis(id, a)) {
        if (!channels.is_pinned(c)) ++here[c];
      }
      for (const auto& [c, count] : here) {
        places[c].emplace_back(id, a);
        most[c] = std::max(most[c], count);
      }
    }
  }
  std::map<std::vector<TensorAxis>, ChannelGroup> groups;
  for (const auto& [c, where] : places) {
    const bool has_weights = std::ranges::any_of(
        where, [&](const TensorAxis& p) { return graph.tensor(p.first).is_constant(); });
    const bool in_gate = std::ranges::all_of(where, [&](const TensorAxis& p) {
      return graph.tensor(p.first).is_constant() || gate[slot(p.first)];
    });
    if (!has_weights || in_gate) continue;
    auto& group = groups[where];
    group.classes.push_back(c);
    group.channels_each = std::max(group.channels_each, most[c]);
  }
  std::vector<ChannelGroup> found;
  for (auto& [where, group] : groups) {
    group.places = where;
    if (group.classes.size() > 1) found.push_back(std::move(group));
  }
  return found;
}

}  // namespace fleetfit::graph
