#include "engine/fuse.h"

#include <algorithm>
#include <optional>

#include "fleetfit/graph/links.h"
#include "fleetfit/graph/operator_facts.h"

namespace fleetfit::engine {
namespace {

using graph::Graph;
using graph::Node;
using graph::TensorId;

class Fuser {
 public:
  Fuser(const Graph& graph, Fusing fusing)
      : graph_(graph), links_(graph), fusing_(fusing), overwritten_(graph.tensors.size(), false) {}

  std::vector<FusedNode> fuse() {
    std::vector<std::optional<FusedNode>> result(graph_.nodes.size());
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      result[i] = FusedNode{node, node.name};
      if (const auto conv = addend_of(static_cast<int>(i))) {
        result[i] = join(links_.node(*conv), node);
        result[static_cast<std::size_t>(*conv)].reset();
        overwritten_[static_cast<std::size_t>(result[i]->node.inputs.back())] = true;
      }
    }
    for (std::size_t i = 0; i < graph_.nodes.size() && fusing_ != Fusing::nothing; ++i) {
      join_shuffle(i, result);
    }
    std::vector<FusedNode> fused;
    for (auto& node : result) {
      if (node) fused.push_back(std::move(*node));
    }
    return fused;
  }

 private:
  /// The convolution whose result the node adds to something that may be overwritten.
  std::optional<int> addend_of(int index) {
    const Node& node = links_.node(index);
    const auto* op = std::get_if<graph::Elementwise>(&node.op);
    if (fusing_ != Fusing::all || op == nullptr || op->kind != graph::ElementwiseKind::add ||
        node.inputs.size() != 2) {
      return std::nullopt;
    }
    std::optional<int> best;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const int conv = links_.maker(node.inputs[side]);
      if (conv >= 0 && can_join(conv, index, node.inputs[1 - side]) && (!best || conv > *best))
        best = conv;
    }
    return best;
  }

  using Nodes = std::vector<std::optional<FusedNode>>;

  /// A channel shuffle takes in the concatenation before it and the split after it.
  void join_shuffle(std::size_t index, Nodes& nodes) const {
    const Node& shuffle = graph_.nodes[index];
    const auto* op = std::get_if<graph::ChannelShuffle>(&shuffle.op);
    if (op == nullptr || op->layout != graph::Layout::nhwc || shuffle.activation) return;
    FusedNode& fused = *nodes[index];
    const int concat = links_.maker(shuffle.inputs[0]);
    if (concat >= 0 && is_last_axis<graph::Concat>(concat, shuffle.inputs[0]) &&
        links_.read_once(shuffle.inputs[0])) {
      const Node& joined = links_.node(concat);
      fused.node.inputs = joined.inputs;
      fused.name = joined.name + "+" + fused.name;
      nodes[static_cast<std::size_t>(concat)].reset();
    }
    if (!links_.read_once(shuffle.outputs[0])) return;
    const int split = links_.readers(shuffle.outputs[0])[0];
    if (is_last_axis<graph::Split>(split, shuffle.outputs[0])) {
      const Node& cut = links_.node(split);
      fused.node.outputs = cut.outputs;
      fused.name += "+" + cut.name;
      nodes[static_cast<std::size_t>(split)].reset();
    }
  }

  /// Whether a node is an Op along the last axis of `tensor` that keeps numbers as they are stored.
  template <class Op>
  bool is_last_axis(int index, TensorId tensor) const {
    const Node& node = links_.node(index);
    const auto* op = std::get_if<Op>(&node.op);
    if (op == nullptr || node.activation) return false;
    const auto rank = static_cast<std::int64_t>(graph_.tensor(tensor).shape->size());
    const auto& parts = std::is_same_v<Op, graph::Concat> ? node.inputs : node.outputs;
    return (op->axis == rank - 1 || op->axis == -1) &&
           std::ranges::all_of(parts, [&](TensorId id) { return same_meaning(id, tensor); });
  }

  bool same_meaning(TensorId a, TensorId b) const {
    return a != graph::kNoTensor && !graph_.tensor(a).is_constant() &&
           graph_.tensor(a).dtype == graph_.tensor(b).dtype &&
           graph_.tensor(a).quantization == graph_.tensor(b).quantization;
  }

  bool can_join(int conv_index, int add_index, TensorId residual) const {
    const Node& conv = links_.node(conv_index);
    const Node& add = links_.node(add_index);
    if (!std::holds_alternative<graph::Conv>(conv.op) || conv.activation ||
        reads_overwritten(conv) || !has_fixed_weights(conv) || has_weight_zero_point(conv))
      return false;
    const TensorId result = conv.outputs[0];
    // A convolution that reads what it adds to would overwrite what it has yet to read.
    const bool reads_residual = std::ranges::find(conv.inputs, residual) != conv.inputs.end();
    return links_.read_once(result) && result != residual && !reads_residual &&
           may_be_overwritten(residual, add_index) && lie_alike(residual, result) &&
           lie_alike(result, add.outputs[0]);
  }

  /// Whether weights and bias are constants, as oneDNN's kernels want them.
  bool has_fixed_weights(const Node& conv) const {
    return std::all_of(conv.inputs.begin() + 1, conv.inputs.end(), [&](TensorId id) {
      return id == graph::kNoTensor || graph_.tensor(id).is_constant();
    });
  }

  /// Whether the weights are stored around another number than zero, which oneDNN cannot do.
  bool has_weight_zero_point(const Node& conv) const {
    const auto& stored = graph_.tensor(conv.inputs[1]).quantization;
    return stored && std::ranges::any_of(stored->zero_points, [](auto zero) { return zero != 0; });
  }

  /// Whether the convolution would come too late if it waited for the addition.
  bool reads_overwritten(const Node& conv) const {
    return std::ranges::any_of(conv.inputs, [&](TensorId id) {
      return id != graph::kNoTensor && overwritten_[static_cast<std::size_t>(id)];
    });
  }

  bool may_be_overwritten(TensorId id, int by) const {
    return links_.maker(id) >= 0 && !links_.is_output(id) && !renamed(id) &&
           links_.readers(id).back() == by;
  }

  /// Whether the tensor may share memory with another one, whose readers are not looked at here.
  bool renamed(TensorId id) const {
    const auto is_movement = [&](int index) { return graph::shares_memory(links_.node(index).op); };
    return is_movement(links_.maker(id)) || std::ranges::any_of(links_.readers(id), is_movement);
  }

  bool lie_alike(TensorId a, TensorId b) const {
    const auto& first = graph_.tensor(a);
    const auto& second = graph_.tensor(b);
    return first.dtype == second.dtype && first.shape == second.shape;
  }

  static FusedNode join(const Node& conv, const Node& add) {
    Node joined = conv;
    while (joined.inputs.size() < 3) joined.inputs.push_back(graph::kNoTensor);  // no bias
    joined.inputs.push_back(add.inputs[0] == conv.outputs[0] ? add.inputs[1] : add.inputs[0]);
    joined.outputs = add.outputs;
    joined.activation = add.activation;
    return {joined, conv.name + "+" + add.name, true, {conv, add}};
  }

  const Graph& graph_;
  graph::Links links_;
  Fusing fusing_;
  std::vector<bool> overwritten_;  // by a convolution that adds in place
};

}  // namespace

std::vector<FusedNode> fuse_nodes(const Graph& graph, Fusing fusing) {
  return Fuser(graph, fusing).fuse();
}

}  // namespace fleetfit::engine
