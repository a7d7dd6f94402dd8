#include "cost/fuse_kernels.h"

#include <algorithm>
#include <optional>

#include "cost/prepare.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::cost {
namespace {

using namespace graph;  // the operators

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

/// How heavily an operator weighs in a kernel: that of the least value gives the kernel its kind.
std::ptrdiff_t rank(const Graph& graph, const Node& node) {
  const auto kinds = kernel_kinds();
  return std::ranges::find(kinds, plain_kind(graph, node)) - kinds.begin();
}

/// The tensor between a kernel and the node that may join it.
struct Joint {
  const NodeGroup& group;
  int follower;
  TensorId tensor;
};

class Fuser {
 public:
  Fuser(const Graph& graph, const KernelRuleData& rules, const std::string& family)
      : graph_(graph),
        rules_(rules),
        family_(family),
        maker_(producers(graph)),
        readers_(graph),
        is_static_(static_tensors(graph)),
        overwritten_(graph.tensors.size(), false),
        group_of_(graph.nodes.size(), -1) {}

  std::vector<NodeGroup> fuse() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) place(static_cast<int>(i));
    std::ranges::sort(groups_, {}, [](const NodeGroup& group) { return group.nodes.back(); });
    return std::move(groups_);
  }

 private:
  const Node& node(int index) const { return graph_.nodes[slot(index)]; }
  std::string type(int index) const { return std::string(type_name(node(index).op)); }
  bool is_output(TensorId id) const {
    return std::ranges::find(graph_.outputs, id) != graph_.outputs.end();
  }

  void place(int index) {
    if (is_static_node(node(index), is_static_)) return;
    if (rules_.free.contains(type(index)) && !node(index).activation) return;
    for (const FuseRule& rule : rules_.fuse) {
      if (const auto group = group_to_join(index, rule)) {
        join(*group, index, rule);
        return;
      }
    }
    group_of_[slot(index)] = static_cast<int>(groups_.size());
    groups_.push_back({.nodes = {index},
                       .anchor = index,
                       .activated = node(index).activation || is_activation(node(index).op)});
  }

  void join(int group_index, int index, const FuseRule& rule) {
    NodeGroup& group = groups_[slot(group_index)];
    if (std::ranges::find(rule.when, Condition::other_dies) != rule.when.end()) {
      const TensorId joined = node(group.nodes.back()).outputs[0];
      for (const TensorId id : others(index, joined)) overwritten_[slot(id)] = true;
    }
    group.nodes.push_back(index);
    group.activated = group.activated || node(index).activation || is_activation(node(index).op);
    if (rank(graph_, node(index)) < rank(graph_, node(group.anchor))) group.anchor = index;
    group_of_[slot(index)] = group_index;
  }

  std::optional<int> group_to_join(int index, const FuseRule& rule) const {
    if (!rule.types.contains(type(index))) return std::nullopt;
    if (!rule.families.empty() && !rule.families.contains(family_)) return std::nullopt;
    for (const TensorId tensor : candidates(index, rule.along)) {
      const int maker = maker_[slot(tensor)];
      const int group = maker < 0 ? -1 : group_of_[slot(maker)];
      if (group >= 0 && fits({groups_[slot(group)], index, tensor}, rule)) return group;
    }
    return std::nullopt;
  }

  std::vector<TensorId> candidates(int index, Along along) const {
    std::vector<TensorId> tensors;
    for (const TensorId id : node(index).inputs) {
      if (id != kNoTensor && !is_static_[slot(id)]) tensors.push_back(id);
    }
    if (along == Along::latest || along == Along::any) {
      std::ranges::stable_sort(tensors, std::greater(),
                               [&](TensorId id) { return maker_[slot(id)]; });
    }
    const bool tries_all = along == Along::each || along == Along::any;
    if (!tries_all && tensors.size() > 1) tensors.resize(1);
    return tensors;
  }

  bool fits(const Joint& joint, const FuseRule& rule) const {
    const int last = joint.group.nodes.back();
    const auto allows = [&](const std::set<std::string>& types, int index) {
      return types.empty() || types.contains(type(index));
    };
    return node(last).outputs.size() == 1 && node(last).outputs[0] == joint.tensor &&
           is_only_reader(joint) && allows(rule.into, joint.group.anchor) &&
           allows(rule.after, last) && std::ranges::all_of(rule.when, [&](Condition condition) {
             return holds(condition, joint);
           });
  }

  bool is_only_reader(const Joint& joint) const {
    return readers_[slot(joint.tensor)].size() == 1 && !is_output(joint.tensor) &&
           std::ranges::count(node(joint.follower).inputs, joint.tensor) == 1;
  }

  bool holds(Condition condition, const Joint& joint) const {
    switch (condition) {
      case Condition::inputs_ready:
        return inputs_ready(joint);
      case Condition::same_shape:
        return same_shape(joint);
      case Condition::constant_channel_operand:
        return has_constant_channel_operand(joint);
      case Condition::constant_weights:
        return has_constant_weights(joint);
      case Condition::not_activated:
        return !joint.group.activated;
      case Condition::other_dies:
        return other_dies(joint);
      case Condition::other_not_read:
        return other_not_read(joint);
      case Condition::channel_axis:
        return works_along_channels(joint);
      case Condition::same_storage:
        return keeps_storage(joint);
      case Condition::float_only:
        return is_plain_float(joint);
      case Condition::not_grouped:
        return plain_kind(graph_, node(joint.group.anchor)) != "grouped_conv2d";
      case Condition::relu_follows:
        return relu_follows(joint);
    }
    return false;
  }

  /// Inputs that are made, without the tensor that the two are joined by.
  std::vector<TensorId> others(int follower, TensorId joined) const {
    std::vector<TensorId> tensors;
    for (const TensorId id : node(follower).inputs) {
      if (id != kNoTensor && id != joined && !is_static_[slot(id)]) tensors.push_back(id);
    }
    return tensors;
  }
  std::vector<TensorId> others(const Joint& joint) const {
    return others(joint.follower, joint.tensor);
  }

  /// A kernel runs where its first node stands, so that much must be there by then.
  bool inputs_ready(const Joint& joint) const {
    return std::ranges::all_of(others(joint), [&](TensorId id) {
      const int maker = maker_[slot(id)];
      if (maker < 0) return true;
      const int group = group_of_[slot(maker)];
      const int start = group < 0 ? maker : groups_[slot(group)].nodes.front();
      return start <= joint.group.nodes.front();
    });
  }

  bool lie_alike(TensorId a, TensorId b) const {
    const auto& first = graph_.tensor(a);
    const auto& second = graph_.tensor(b);
    return first.dtype == second.dtype && first.shape && first.shape == second.shape;
  }

  bool same_shape(const Joint& joint) const {
    return lie_alike(joint.tensor, node(joint.follower).outputs[0]) &&
           std::ranges::all_of(others(joint),
                               [&](TensorId id) { return lie_alike(id, joint.tensor); });
  }

  std::size_t channels_of(const Shape& shape, int maker) const {
    const auto& op = node(maker).op;
    if (const auto* conv = std::get_if<Conv>(&op)) return channel_axis(shape, conv->layout);
    if (const auto* conv = std::get_if<ConvTranspose>(&op)) {
      return channel_axis(shape, conv->layout);
    }
    if (const auto* norm = std::get_if<BatchNorm>(&op)) return channel_axis(shape, norm->layout);
    return shape.size() - 1;
  }

  bool has_constant_channel_operand(const Joint& joint) const {
    if (!others(joint).empty()) return false;
    const Node& follower = node(joint.follower);
    if (std::holds_alternative<BatchNorm>(follower.op)) return true;
    const auto& shape = graph_.tensor(joint.tensor).shape;
    if (!shape || shape->empty() || follower.inputs.size() != 2) return false;
    const auto channels = channels_of(*shape, joint.group.anchor);
    return std::ranges::all_of(follower.inputs, [&](TensorId id) {
      return id == joint.tensor || varies_only_along(id, channels, *shape);
    });
  }

  bool varies_only_along(TensorId id, std::size_t axis, const Shape& whole) const {
    const auto& shape = graph_.tensor(id).shape;
    if (!shape || shape->size() > whole.size()) return false;
    const auto skipped = whole.size() - shape->size();
    for (std::size_t d = 0; d < shape->size(); ++d) {
      if ((*shape)[d] != 1 && d + skipped != axis) return false;
    }
    return true;
  }

  bool has_constant_weights(const Joint& joint) const {
    const Node& anchor = node(joint.group.anchor);
    return std::all_of(anchor.inputs.begin() + 1, anchor.inputs.end(), [&](TensorId id) {
      if (id == kNoTensor) return true;
      const auto& tensor = graph_.tensor(id);
      return tensor.is_constant() &&
             (!tensor.quantization ||
              std::ranges::all_of(tensor.quantization->zero_points, [](auto z) { return z == 0; }));
    });
  }

  bool other_dies(const Joint& joint) const {
    const auto other = others(joint);
    if (other.size() != 1 || reads_overwritten(joint.group)) return false;
    const TensorId id = other.front();
    const int maker = maker_[slot(id)];
    const auto moves = [&](int index) { return shares_memory(node(index).op); };
    return maker >= 0 && !is_output(id) && !moves(maker) &&
           std::ranges::none_of(readers_[slot(id)], moves) &&
           readers_[slot(id)].back() == joint.follower;
  }

  bool reads_overwritten(const NodeGroup& group) const {
    return std::ranges::any_of(group.nodes, [&](int index) {
      return std::ranges::any_of(node(index).inputs, [&](TensorId id) {
        return id != kNoTensor && overwritten_[slot(id)];
      });
    });
  }

  bool other_not_read(const Joint& joint) const {
    return std::ranges::none_of(others(joint), [&](TensorId other) {
      return std::ranges::any_of(joint.group.nodes, [&](int index) {
        return std::ranges::find(node(index).inputs, other) != node(index).inputs.end();
      });
    });
  }

  /// Of a channel shuffle and the concatenation before it or the split after it.
  bool works_along_channels(const Joint& joint) const {
    const auto& shape = graph_.tensor(joint.tensor).shape;
    if (!shape || shape->size() < 2) return false;
    Layout layout = Layout::nchw;
    std::optional<std::int64_t> axis;
    for (const int index : {joint.group.nodes.back(), joint.follower}) {
      const auto& op = node(index).op;
      if (const auto* shuffle = std::get_if<ChannelShuffle>(&op)) layout = shuffle->layout;
      if (const auto* concat = std::get_if<Concat>(&op)) axis = concat->axis;
      if (const auto* split = std::get_if<Split>(&op)) axis = split->axis;
    }
    if (!axis) return false;
    const auto rank = static_cast<std::int64_t>(shape->size());
    return (*axis + rank) % rank == static_cast<std::int64_t>(channel_axis(*shape, layout));
  }

  bool keeps_storage(const Joint& joint) const {
    const auto& before = graph_.tensor(joint.tensor);
    const auto same = [&](TensorId id) {
      const auto& tensor = graph_.tensor(id);
      return tensor.dtype == before.dtype && tensor.quantization == before.quantization;
    };
    const Node& last = node(joint.group.nodes.back());
    return std::ranges::all_of(node(joint.follower).outputs, same) &&
           std::ranges::all_of(last.inputs, [&](TensorId id) {
             return id != kNoTensor && !graph_.tensor(id).is_constant() && same(id);
           });
  }

  bool relu_follows(const Joint& joint) const {
    const TensorId result = node(joint.follower).outputs[0];
    if (readers_[slot(result)].size() != 1 || is_output(result)) return false;
    const auto* activate = std::get_if<Activate>(&node(readers_[slot(result)][0]).op);
    return activate != nullptr && activate->function.kind == ActivationKind::relu;
  }

  bool is_plain_float(const Joint& joint) const {
    const auto plain = [&](TensorId id) {
      return is_float(graph_.tensor(id).dtype) && !graph_.tensor(id).quantization;
    };
    return plain(joint.tensor) && plain(node(joint.follower).outputs[0]);
  }

  const Graph& graph_;
  const KernelRuleData& rules_;
  const std::string& family_;
  std::vector<int> maker_;
  graph::Consumers readers_;
  std::vector<bool> is_static_;
  std::vector<bool> overwritten_;  // by a kernel that adds in place
  std::vector<int> group_of_;      // of each node; -1: none
  std::vector<NodeGroup> groups_;
};

}  // namespace

std::vector<NodeGroup> fuse_kernels(const Graph& graph, const KernelRuleData& rules,
                                    const std::string& family) {
  return Fuser(graph, rules, family).fuse();
}

}  // namespace fleetfit::cost
