#include <algorithm>
#include <functional>
#include <optional>

#include "cost/convolution_shape.h"
#include "cost/prepare.h"
#include "cost/rules.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/links.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::cost {
namespace {

using namespace graph;  // the operators

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

const Node& node_at(const Graph& graph, int index) { return graph.nodes[slot(index)]; }

std::string type_of(const Node& node) { return std::string(type_name(node.op)); }

/// Where a kind stands among all: of the operators in a kernel, the first gives it its kind.
std::ptrdiff_t rank(std::string_view kind) {
  const auto kinds = kernel_kinds();
  return std::ranges::find(kinds, kind) - kinds.begin();
}

bool activates(const Node& node) { return node.activation || is_activation(node.op); }

/// What a node reads that is made in each run, but for one tensor.
std::vector<TensorId> made_inputs(const Links& links, const Node& node, TensorId but) {
  std::vector<TensorId> tensors;
  for (const TensorId id : node.inputs) {
    if (id != kNoTensor && id != but && !links.is_static(id)) tensors.push_back(id);
  }
  return tensors;
}

bool applies_to(const std::set<std::string>& families, const std::string& family) {
  return families.empty() || families.contains(family);
}

/// Nodes of a prepared graph that run as one.
struct NodeGroup {
  std::vector<int> nodes;  ///< in order of execution
  int anchor = 0;          ///< the one that does the work
  bool activated = false;  ///< an activation is part of it
};

/// What is known of a prepared graph while its nodes are put into groups.
struct Grouping {
  explicit Grouping(const Graph& graph)
      : links(graph), group_of(graph.nodes.size(), -1), overwritten(graph.tensors.size(), false) {}

  Links links;
  std::vector<NodeGroup> groups;
  std::vector<int> group_of;      ///< of each node; -1: none
  std::vector<bool> overwritten;  ///< tensors, by a kernel that adds in place
};

/// A node that may join a group, and the tensor between the two.
struct Joint {
  const Grouping& grouping;
  const NodeGroup& group;
  int follower_index;
  TensorId tensor;

  const Links& links() const { return grouping.links; }
  const Tensor& joined() const { return links().tensor(tensor); }
  const Node& anchor() const { return links().node(group.anchor); }
  const Node& last() const { return links().node(group.nodes.back()); }
  const Node& follower() const { return links().node(follower_index); }
  TensorId result() const { return follower().outputs[0]; }

  /// What else the follower reads that is made.
  std::vector<TensorId> others() const { return made_inputs(links(), follower(), tensor); }
};

// --- What a rule may ask for beside types.

/// A kernel runs where its first node stands, so that much must be there by then.
bool has_inputs_ready(const Joint& joint) {
  return std::ranges::all_of(joint.others(), [&](TensorId id) {
    const int maker = joint.links().maker(id);
    if (maker < 0) return true;
    const int group = joint.grouping.group_of[slot(maker)];
    const int start = group < 0 ? maker : joint.grouping.groups[slot(group)].nodes.front();
    return start <= joint.group.nodes.front();
  });
}

bool has_same_shape(const Joint& joint) {
  const Tensor& joined = joint.joined();
  const auto lies_alike = [&](TensorId id) {
    const Tensor& tensor = joint.links().tensor(id);
    return tensor.dtype == joined.dtype && tensor.shape && tensor.shape == joined.shape;
  };
  return lies_alike(joint.result()) && std::ranges::all_of(joint.others(), lies_alike);
}

bool varies_only_along(const std::optional<Shape>& shape, std::size_t axis, const Shape& whole) {
  if (!shape || shape->size() > whole.size()) return false;
  const auto skipped = whole.size() - shape->size();
  for (std::size_t d = 0; d < shape->size(); ++d) {
    if ((*shape)[d] != 1 && d + skipped != axis) return false;
  }
  return true;
}

bool has_constant_channel_operand(const Joint& joint) {
  if (!joint.others().empty()) return false;
  const Node& follower = joint.follower();
  if (std::holds_alternative<BatchNorm>(follower.op)) return true;
  const auto& shape = joint.joined().shape;
  if (!shape || shape->empty() || follower.inputs.size() != 2) return false;
  const auto layout = layout_of(joint.anchor().op);
  const auto channels = layout ? channel_axis(*shape, *layout) : shape->size() - 1;
  return std::ranges::all_of(follower.inputs, [&](TensorId id) {
    return id == joint.tensor ||
           varies_only_along(joint.links().tensor(id).shape, channels, *shape);
  });
}

bool has_constant_weights(const Joint& joint) {
  const Node& anchor = joint.anchor();
  return std::all_of(anchor.inputs.begin() + 1, anchor.inputs.end(), [&](TensorId id) {
    if (id == kNoTensor) return true;
    const auto& tensor = joint.links().tensor(id);
    return tensor.is_constant() &&
           (!tensor.quantization ||
            std::ranges::all_of(tensor.quantization->zero_points, [](auto z) { return z == 0; }));
  });
}

bool is_not_activated(const Joint& joint) { return !joint.group.activated; }

bool reads_overwritten(const Joint& joint) {
  return std::ranges::any_of(joint.group.nodes, [&](int index) {
    return std::ranges::any_of(joint.links().node(index).inputs, [&](TensorId id) {
      return id != kNoTensor && joint.grouping.overwritten[slot(id)];
    });
  });
}

bool lets_other_die(const Joint& joint) {
  const auto other = joint.others();
  if (other.size() != 1 || reads_overwritten(joint)) return false;
  const Links& links = joint.links();
  const TensorId id = other.front();
  const auto moves = [&](int index) { return shares_memory(links.node(index).op); };
  return links.maker(id) >= 0 && !links.is_output(id) && !moves(links.maker(id)) &&
         std::ranges::none_of(links.readers(id), moves) &&
         links.readers(id).back() == joint.follower_index;
}

bool does_not_read_other(const Joint& joint) {
  return std::ranges::none_of(joint.others(), [&](TensorId other) {
    return std::ranges::any_of(joint.group.nodes, [&](int index) {
      const auto& inputs = joint.links().node(index).inputs;
      return std::ranges::find(inputs, other) != inputs.end();
    });
  });
}

/// Of a channel shuffle and the concatenation before it or the split after it.
bool works_along_channels(const Joint& joint) {
  const auto& shape = joint.joined().shape;
  if (!shape || shape->size() < 2) return false;
  Layout layout = Layout::nchw;
  std::optional<std::int64_t> axis;
  for (const Node* node : {&joint.last(), &joint.follower()}) {
    if (const auto* shuffle = std::get_if<ChannelShuffle>(&node->op)) layout = shuffle->layout;
    if (const auto* concat = std::get_if<Concat>(&node->op)) axis = concat->axis;
    if (const auto* split = std::get_if<Split>(&node->op)) axis = split->axis;
  }
  if (!axis) return false;
  const auto rank = static_cast<std::int64_t>(shape->size());
  return (*axis + rank) % rank == static_cast<std::int64_t>(channel_axis(*shape, layout));
}

bool keeps_storage(const Joint& joint) {
  const Tensor& joined = joint.joined();
  const auto same = [&](TensorId id) {
    const Tensor& tensor = joint.links().tensor(id);
    return tensor.dtype == joined.dtype && tensor.quantization == joined.quantization;
  };
  return std::ranges::all_of(joint.follower().outputs, same) &&
         std::ranges::all_of(joint.last().inputs, [&](TensorId id) {
           return id != kNoTensor && !joint.links().tensor(id).is_constant() && same(id);
         });
}

bool is_plain_float(const Joint& joint) {
  const auto plain = [](const Tensor& tensor) {
    return is_float(tensor.dtype) && !tensor.quantization;
  };
  return plain(joint.joined()) && plain(joint.links().tensor(joint.result()));
}

bool is_not_grouped(const Joint& joint) {
  return plain_kind(joint.links().graph(), joint.anchor()) != "grouped_conv2d";
}

bool is_followed_by_relu(const Joint& joint) {
  const Links& links = joint.links();
  if (!links.read_once(joint.result())) return false;
  const auto* activate = std::get_if<Activate>(&links.node(links.readers(joint.result())[0]).op);
  return activate != nullptr && activate->function.kind == ActivationKind::relu;
}

struct Check {
  Condition condition;
  bool (*holds)(const Joint&);
};
constexpr Check kChecks[] = {{Condition::inputs_ready, has_inputs_ready},
                             {Condition::same_shape, has_same_shape},
                             {Condition::constant_channel_operand, has_constant_channel_operand},
                             {Condition::constant_weights, has_constant_weights},
                             {Condition::not_activated, is_not_activated},
                             {Condition::other_dies, lets_other_die},
                             {Condition::other_not_read, does_not_read_other},
                             {Condition::channel_axis, works_along_channels},
                             {Condition::same_storage, keeps_storage},
                             {Condition::float_only, is_plain_float},
                             {Condition::not_grouped, is_not_grouped},
                             {Condition::relu_follows, is_followed_by_relu}};

bool holds(Condition condition, const Joint& joint) {
  const auto* check = std::ranges::find(kChecks, condition, &Check::condition);
  return check != std::end(kChecks) && check->holds(joint);
}

/// Puts every node that costs something into one group, by the rules for a family of devices.
class Fuser {
 public:
  Fuser(const Graph& graph, const KernelRuleData& rules, const std::string& family)
      : rules_(rules), family_(family), grouping_(graph) {}

  /// Groups in an order of execution.
  std::vector<NodeGroup> fuse() {
    const int count = static_cast<int>(links().graph().nodes.size());
    for (int index = 0; index < count; ++index) place(index);
    std::ranges::sort(grouping_.groups, {},
                      [](const NodeGroup& group) { return group.nodes.back(); });
    return std::move(grouping_.groups);
  }

 private:
  const Links& links() const { return grouping_.links; }
  const Node& node(int index) const { return links().node(index); }

  void place(int index) {
    if (links().is_static(node(index))) return;
    if (rules_.free.contains(type_of(node(index))) && !node(index).activation) return;
    for (const FuseRule& rule : rules_.fuse) {
      if (const auto group = group_to_join(index, rule)) {
        join(*group, index, rule);
        return;
      }
    }
    grouping_.group_of[slot(index)] = static_cast<int>(grouping_.groups.size());
    grouping_.groups.push_back(
        {.nodes = {index}, .anchor = index, .activated = activates(node(index))});
  }

  void join(int group_index, int index, const FuseRule& rule) {
    NodeGroup& group = grouping_.groups[slot(group_index)];
    if (std::ranges::find(rule.when, Condition::other_dies) != rule.when.end()) {
      const TensorId joined = node(group.nodes.back()).outputs[0];
      for (const TensorId id : made_inputs(links(), node(index), joined))
        grouping_.overwritten[slot(id)] = true;
    }
    group.nodes.push_back(index);
    group.activated = group.activated || activates(node(index));
    if (rank_of(index) < rank_of(group.anchor)) group.anchor = index;
    grouping_.group_of[slot(index)] = group_index;
  }

  std::ptrdiff_t rank_of(int index) const { return rank(plain_kind(links().graph(), node(index))); }

  std::optional<int> group_to_join(int index, const FuseRule& rule) const {
    if (!rule.types.contains(type_of(node(index))) || !applies_to(rule.families, family_)) {
      return std::nullopt;
    }
    for (const TensorId tensor : candidates(index, rule.along)) {
      const int maker = links().maker(tensor);
      const int group = maker < 0 ? -1 : grouping_.group_of[slot(maker)];
      if (group >= 0 && fits({grouping_, grouping_.groups[slot(group)], index, tensor}, rule)) {
        return group;
      }
    }
    return std::nullopt;
  }

  std::vector<TensorId> candidates(int index, Along along) const {
    auto tensors = made_inputs(links(), node(index), kNoTensor);
    if (along == Along::latest || along == Along::any) {
      std::ranges::stable_sort(tensors, std::greater(),
                               [&](TensorId id) { return links().maker(id); });
    }
    const bool tries_all = along == Along::each || along == Along::any;
    if (!tries_all && tensors.size() > 1) tensors.resize(1);
    return tensors;
  }

  static bool fits(const Joint& joint, const FuseRule& rule) {
    const auto allows = [](const std::set<std::string>& types, const Node& node) {
      return types.empty() || types.contains(type_of(node));
    };
    return joint.last().outputs.size() == 1 && joint.last().outputs[0] == joint.tensor &&
           joint.links().read_once(joint.tensor) &&
           std::ranges::count(joint.follower().inputs, joint.tensor) == 1 &&
           allows(rule.into, joint.anchor()) && allows(rule.after, joint.last()) &&
           std::ranges::all_of(rule.when,
                               [&](Condition condition) { return holds(condition, joint); });
  }

  const KernelRuleData& rules_;
  const std::string& family_;
  Grouping grouping_;
};

std::string selected_kind(const Graph& graph, const Node& node, const KernelRuleData& rules,
                          const std::string& family) {
  std::string plain(plain_kind(graph, node));
  for (const SelectRule& rule : rules.select) {
    if (!rule.of.contains(plain) || !applies_to(rule.families, family)) continue;
    const bool fits = std::ranges::all_of(
        rule.when, [&](const Bound& bound) { return is_within(bound, graph, node); });
    if (fits) return rule.kind;
  }
  return plain;
}

/// Of the nodes behind a kernel the one that does its work: of the same kind as in the prepared
/// graph if there is one, else the heaviest.
int anchor_among(const Graph& graph, const std::vector<int>& nodes, std::string_view kind) {
  const auto weight = [&](int index) {
    const auto own = plain_kind(graph, node_at(graph, index));
    return own == kind ? -1 : rank(own);
  };
  return *std::ranges::min_element(nodes, {}, weight);
}

/// The nodes of the file that a group stands for, the one that does the work first.
std::vector<int> nodes_of(const NodeGroup& group, const Graph& file,
                          const PreparedGraph& prepared) {
  const auto origins = [&](int index) -> const std::vector<int>& {
    return prepared.origins[static_cast<std::size_t>(index)];
  };
  std::vector<int> nodes;
  for (const int index : group.nodes) {
    nodes.insert(nodes.end(), origins(index).begin(), origins(index).end());
  }
  if (nodes.empty()) return nodes;
  std::ranges::sort(nodes);
  const auto& of_anchor = origins(group.anchor).empty() ? nodes : origins(group.anchor);
  const int anchor = anchor_among(
      file, of_anchor, plain_kind(prepared.graph, node_at(prepared.graph, group.anchor)));
  const auto place = std::ranges::find(nodes, anchor);
  std::rotate(nodes.begin(), place, place + 1);
  return nodes;
}

}  // namespace

Result<KernelPlan> deduce_kernels(const Graph& graph, const KernelRules& rules) {
  FLEETFIT_TRY(graph::validate(graph));
  FLEETFIT_ASSIGN(const auto prepared, prepare_graph(graph, *rules.data_));
  KernelPlan plan{.before_fusion = prepared.operators_before};
  for (const auto& group : Fuser(prepared.graph, *rules.data_, rules.family_).fuse()) {
    auto nodes = nodes_of(group, graph, prepared);
    if (nodes.empty()) continue;
    // Without a kernel for 8 bits the framework unpacks them before the operator and packs them
    // afterwards.
    if (rules.data_->unpacked.contains(type_of(node_at(prepared.graph, group.anchor)))) {
      std::ranges::sort(nodes);
      for (const int index : nodes) {
        plan.kernels.push_back(
            {.kind = std::string(plain_kind(graph, node_at(graph, index))), .nodes = {index}});
      }
      continue;
    }
    plan.kernels.push_back(
        {.kind = selected_kind(prepared.graph, node_at(prepared.graph, group.anchor), *rules.data_,
                               rules.family_),
         .nodes = std::move(nodes)});
  }
  lay_out_blocks(graph, rules.data_->blocks, plan.kernels);
  return plan;
}

}  // namespace fleetfit::cost
