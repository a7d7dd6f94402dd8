#include <algorithm>

#include "cost/blocked_layout.h"
#include "cost/fuse_kernels.h"
#include "cost/prepare.h"
#include "cost/quantities.h"
#include "cost/rules.h"
#include "fleetfit/cost/kernels.h"

namespace fleetfit::cost {
namespace {

using graph::Graph;
using graph::Node;

const Node& node_at(const Graph& graph, int index) {
  return graph.nodes[static_cast<std::size_t>(index)];
}

bool holds(const Bound& bound, const Graph& graph, const Node& node) {
  const auto value = quantity(bound.quantity, graph, node);
  if (!value) return false;
  return (!bound.is || *value == *bound.is) && (!bound.at_least || *value >= *bound.at_least) &&
         (!bound.at_most || *value <= *bound.at_most) &&
         (!bound.multiple_of || *value % *bound.multiple_of == 0);
}

std::string selected_kind(const Graph& graph, const Node& node, const KernelRuleData& rules,
                          const std::string& family) {
  std::string plain(plain_kind(graph, node));
  for (const SelectRule& rule : rules.select) {
    if (!rule.of.contains(plain) || (!rule.families.empty() && !rule.families.contains(family))) {
      continue;
    }
    const bool fits = std::ranges::all_of(
        rule.when, [&](const Bound& bound) { return holds(bound, graph, node); });
    if (fits) return rule.kind;
  }
  return plain;
}

/// Of the nodes behind a kernel the one that does its work: of the same kind as in the prepared
/// graph if there is one, else the heaviest.
int anchor_among(const Graph& graph, const std::vector<int>& nodes, std::string_view kind) {
  const auto kinds = kernel_kinds();
  const auto weight = [&](int index) {
    const auto own = plain_kind(graph, node_at(graph, index));
    return own == kind ? -1 : std::ranges::find(kinds, own) - kinds.begin();
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

/// Whether the framework unpacks 8 bits before the operator and packs them afterwards.
bool runs_unpacked(const NodeGroup& group, const PreparedGraph& prepared,
                   const KernelRuleData& rules) {
  const Node& anchor = node_at(prepared.graph, group.anchor);
  return rules.unpacked.contains(std::string(type_name(anchor.op)));
}

}  // namespace

Result<KernelPlan> deduce_kernels(const Graph& graph, const KernelRules& rules) {
  FLEETFIT_TRY(graph::validate(graph));
  FLEETFIT_ASSIGN(const auto prepared, prepare_graph(graph, *rules.data_));
  KernelPlan plan{.before_fusion = prepared.operators_before};
  for (const auto& group : fuse_kernels(prepared.graph, *rules.data_, rules.family_)) {
    auto nodes = nodes_of(group, graph, prepared);
    if (nodes.empty()) continue;
    if (runs_unpacked(group, prepared, *rules.data_)) {
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
