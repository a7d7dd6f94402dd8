#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph::rewrite {

inline constexpr int kNoNode = -1;

/// A graph while a pass replaces its nodes. Knows at any time who makes and who reads each tensor.
/// Nodes keep their indices until finish(), which drops the removed ones. While it is in use,
/// inputs and outputs of nodes change through it alone; everything else may be changed directly.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph);

  Graph& graph() { return graph_; }
  Node& node(int index) { return graph_.nodes[static_cast<std::size_t>(index)]; }
  const Node& node(int index) const { return graph_.nodes[static_cast<std::size_t>(index)]; }
  int node_count() const { return static_cast<int>(graph_.nodes.size()); }
  bool removed(int index) const { return removed_[static_cast<std::size_t>(index)]; }

  /// The node that makes a tensor; kNoNode for inputs, constants and kNoTensor.
  int maker(TensorId id) const;

  /// The same if that node is an Op, else kNoNode.
  template <class Op>
  int maker_of(TensorId id) const {
    const int index = maker(id);
    if (index == kNoNode) return kNoNode;
    const auto& op = graph_.nodes[static_cast<std::size_t>(index)].op;
    return std::holds_alternative<Op>(op) ? index : kNoNode;
  }

  /// Nodes that read a tensor, one entry for each input that refers to it.
  const std::vector<int>& readers(TensorId id) const;
  bool is_output(TensorId id) const { return ends().is_output[static_cast<std::size_t>(id)]; }

  /// Whether one input of one node is all that needs the tensor.
  bool read_once(TensorId id) const { return readers(id).size() == 1 && !is_output(id); }

  /// Whether the first output of a node is all that anybody needs of it.
  bool only_first_output_needed(int index) const;

  /// Whether nobody but `nodes` needs what they make, the first of them (the last to run) left out.
  bool are_private(const std::vector<int>& nodes) const;

  void set_inputs(int index, std::vector<TensorId> inputs);

  /// Removes a node; its outputs are left to the node that makes them next.
  void remove(int index);

  /// Removes the maker of a tensor if nobody needs any of its outputs, then that of its inputs, and
  /// so on.
  void remove_unread(TensorId id);

  /// Removes a node whose first output equals `source`, whose readers get `source` instead. Leaves
  /// the graph as it is and says false where a graph output would lose its name or `source` and
  /// the output differ in type or quantization.
  bool bypass(int index, TensorId source);

  /// Removes `follower`, the only reader of the first output of `index`, which now makes what
  /// `follower` made, with its activation.
  void take_over(int index, int follower);

  /// Drops removed nodes, sorts, and says whether anything changed. The last call.
  Result<bool> finish();

 private:
  /// Where each tensor comes from and whether it leaves the network.
  struct Ends {
    explicit Ends(const Graph& graph);

    std::vector<int> maker;
    std::vector<bool> is_output;
    std::vector<bool> is_input;
  };
  using Readers = std::vector<std::vector<int>>;  // of each tensor

  // Found when first asked for: most passes find nothing to look at in most networks.
  Ends& ends() const;
  Readers& all_readers() const;
  void cover_new_tensors();
  void add_reader(TensorId id, int index);
  void drop_reader(TensorId id, int index);
  void replace_reads(TensorId from, TensorId to);

  Graph& graph_;
  mutable std::optional<Ends> ends_;
  mutable std::optional<Readers> readers_;
  std::vector<bool> removed_;
  std::vector<int> place_;  // index of the old node before which a node goes
  bool changed_ = false;
};

/// Calls `change` with the rewriter and the index of each node that is still there when its turn
/// comes; says whether anything changed.
template <class Change>
Result<bool> rewrite_nodes(Graph& graph, Change change) {
  Rewriter rewriter(graph);
  for (int n = 0; n < rewriter.node_count(); ++n) {
    if (!rewriter.removed(n)) change(rewriter, n);
  }
  return rewriter.finish();
}

/// Whether a node with one data input only moves its elements: shapes are known, and type and
/// quantization, which is not by axis, stay.
bool is_pure_move(const Graph& graph, const Node& node);

/// Whether an input or output of the node is quantized: rounding happens here.
bool touches_quantized(const Graph& graph, const Node& node);

/// Whether the tensor is there, a 32-bit float, and not quantized.
bool is_plain_float(const Graph& graph, TensorId id);

/// Whether both are known and equal.
bool same_shape(const Graph& graph, TensorId a, TensorId b);

}  // namespace fleetfit::graph::rewrite
