#pragma once

#include <optional>
#include <vector>

#include "graph/passes/layout_forms.h"

namespace fleetfit::graph::rewrite {

/// A node while it is brought to tensors in another layout: the words in which its operator says
/// what it becomes. Inputs that list something per dimension are replaced.
class Adaptation {
 public:
  Adaptation(LayoutForms& forms, const Node& node, std::size_t rank);

  std::vector<TensorId> inputs;  ///< as the node's, with adapted ones in place
  bool plain_result = false;     ///< the result has no image dimensions left to be moved

  std::size_t rank() const { return rank_; }
  std::size_t output_count() const { return outputs_; }

  /// Where an axis lies in the other layout.
  std::int64_t placed(std::int64_t axis) const;

  /// Whether the dimensions that are not reduced have the same order in both layouts.
  bool keeps_order(const Ints& moved_axes) const;

  /// Reorders a constant input of `lists` lists with one entry per dimension; true if it is left
  /// out. False if it cannot be done.
  bool reorder(std::size_t input, std::size_t lists);

  /// The same for the axes of a slice, at input 3.
  bool place_axes();

  /// Whether an input was replaced by a tensor of the new graph.
  bool is_replaced(std::size_t input) const;

 private:
  LayoutForms& forms_;
  std::size_t outputs_;
  std::size_t rank_;
  Ints perm_;
  Ints place_;
  std::vector<std::size_t> replaced_;
};

using Followed = std::optional<Operator>;

/// Of an operator that works in any layout.
inline Followed follow_unchanged(const Operator& op, Adaptation&) { return op; }

/// Of one along an axis.
template <class Op>
Followed follow_axis(const Op& op, Adaptation& adaptation) {
  auto adapted = op;
  adapted.axis = adaptation.placed(op.axis);
  return adapted;
}

}  // namespace fleetfit::graph::rewrite
