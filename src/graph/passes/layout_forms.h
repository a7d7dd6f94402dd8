#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/graph/graph.h"

namespace fleetfit::graph::rewrite {

/// A graph while it is written again for another layout. Each tensor of the old graph exists in its
/// plain form, in a moved form (its dimensions in the wanted layout), or in both; the form that is
/// missing is made by a Transpose when somebody first asks for it. So a Transpose stands only where
/// the two worlds meet.
class LayoutForms {
 public:
  LayoutForms(Graph& graph, Layout wanted);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Layout wanted() const { return wanted_; }

  /// From the other layout to the wanted one, for tensors of this rank (at least 3).
  Ints perm(std::size_t rank) const;

  bool has_plain(TensorId id) const { return plain_[static_cast<std::size_t>(id)] != kNoTensor; }
  bool has_moved(TensorId id) const { return moved_[static_cast<std::size_t>(id)] != kNoTensor; }

  /// The tensor in its plain form; kNoTensor stays what it is.
  TensorId plain(TensorId id);

  /// The tensor in its moved form. It has a known shape of rank 3 or more.
  TensorId moved(TensorId id);

  /// A constant that is broadcast against moved tensors of this rank.
  TensorId moved_constant(TensorId id, std::size_t rank);

  /// A new tensor for the moved form of a result that the next node makes.
  TensorId declare_moved(TensorId id);

  /// Says that another tensor of the new graph holds a form already.
  void set_plain(TensorId id, TensorId form) { plain_[static_cast<std::size_t>(id)] = form; }
  void set_moved(TensorId id, TensorId form) { moved_[static_cast<std::size_t>(id)] = form; }

  /// Adds a node whose inputs and outputs are tensors of the new graph.
  void emit(Node node);

  /// Adds a node whose inputs and outputs are plain.
  void emit_plain(Node node);

  /// Replaces the graph's nodes by those that were added; graph outputs keep their tensors.
  void finish();

 private:
  void give_output(TensorId id);
  bool is_border(TensorId id) const;

  Graph& graph_;
  Layout wanted_;
  std::vector<TensorId> plain_;
  std::vector<TensorId> moved_;
  std::map<std::pair<TensorId, std::size_t>, TensorId> constants_;
  std::vector<Node> nodes_;
};

// Each of the following writes one node of the old graph down in moved form, and does nothing and
// says false where that cannot be done.

/// An operator on images that is in the other layout, with its weights.
bool move_image_operator(LayoutForms& forms, const Node& node);

/// TFLite's SpaceToBatch and BatchToSpace, which exist in NHWC only, out of operators that know no
/// layout.
bool move_batch_operator(LayoutForms& forms, const Node& node);

/// An operator without layout whose axes and per-dimension inputs can be adapted, if its inputs are
/// moved already.
bool move_follower(LayoutForms& forms, const Node& node);

/// A Transpose that a moved form makes needless or shorter.
bool move_transpose(LayoutForms& forms, const Node& node);

}  // namespace fleetfit::graph::rewrite
