#include <algorithm>

#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {
namespace {

template <class T>
bool all_equal_to(const std::optional<std::vector<T>>& values, T wanted) {
  return values &&
         std::all_of(values->begin(), values->end(), [&](T value) { return value == wanted; });
}

// Whether a node hands its first input on as it is.
class IdentityCheck {
 public:
  IdentityCheck(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  bool operator()(const Identity&) const { return true; }
  bool operator()(const Dropout&) const { return true; }
  bool operator()(const Cast& cast) const { return input().dtype == cast.to; }
  bool operator()(const Reshape&) const { return keeps_shape(); }
  bool operator()(const Flatten&) const { return keeps_shape(); }
  bool operator()(const Squeeze&) const { return keeps_shape(); }
  bool operator()(const Unsqueeze&) const { return keeps_shape(); }
  bool operator()(const Expand&) const { return keeps_shape(); }
  bool operator()(const Tile&) const { return all_equal_to<std::int64_t>(ints(1), 1); }
  bool operator()(const Pad&) const { return all_equal_to<std::int64_t>(ints(1), 0); }
  bool operator()(const Concat&) const { return node_.inputs.size() == 1; }
  bool operator()(const Split&) const { return node_.outputs.size() == 1; }

  bool operator()(const Elementwise& op) const {
    const bool takes_any_number =
        op.kind == ElementwiseKind::sum || op.kind == ElementwiseKind::mean ||
        op.kind == ElementwiseKind::min || op.kind == ElementwiseKind::max;
    return takes_any_number && node_.inputs.size() == 1;
  }

  bool operator()(const Transpose& op) const {
    return input().shape && is_identity(full_perm(op, input().shape->size()));
  }

  bool operator()(const Slice& op) const {
    if (!op.squeezed.empty() || !keeps_shape()) return false;
    // A negative step keeps the shape, but not the order.
    return !has(4) || all_equal_to<std::int64_t>(ints(4), 1);
  }

  bool operator()(const Resize&) const {
    if (!keeps_shape()) return false;
    // A factor a little above one may keep the shape, but not the samples.
    const bool by_scales = has(2) && input_extent(2) > 0;
    return !by_scales || all_equal_to<double>(constant_numbers(graph_, node_.inputs[2]), 1.0);
  }

  bool operator()(const auto&) const { return false; }

 private:
  const Tensor& input() const { return graph_.tensor(node_.inputs.front()); }
  bool keeps_shape() const {
    return same_shape(graph_, node_.inputs.front(), node_.outputs.front());
  }
  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoTensor; }
  std::optional<Ints> ints(std::size_t i) const {
    return has(i) ? constant_ints(graph_, node_.inputs[i]) : std::nullopt;
  }
  std::int64_t input_extent(std::size_t i) const {
    const auto& shape = graph_.tensor(node_.inputs[i]).shape;
    return shape ? elements(*shape) : 1;
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

Result<bool> remove_identities(Graph& graph) {
  Rewriter rewriter(graph);
  for (int n = 0; n < rewriter.node_count(); ++n) {
    const auto& node = rewriter.node(n);
    if (node.inputs.empty() || node.inputs.front() == kNoTensor || node.activation) continue;
    if (!std::visit(IdentityCheck(graph, node), node.op)) continue;
    if (rewriter.only_first_output_needed(n)) rewriter.bypass(n, node.inputs.front());
  }
  return rewriter.finish();
}

}  // namespace fleetfit::graph::rewrite
