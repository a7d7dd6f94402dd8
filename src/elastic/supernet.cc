#include "fleetfit/elastic/supernet.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

namespace fleetfit::elastic {
namespace {

using graph::Graph;
using graph::Shape;

/// Types and shapes of the tensors; shapes that nobody can tell are left empty and fit nothing but
/// each other.
std::vector<std::pair<graph::DType, std::optional<Shape>>> shapes(
    const Graph& graph, const std::vector<graph::TensorId>& ids) {
  std::vector<std::pair<graph::DType, std::optional<Shape>>> found;
  for (const auto id : ids) found.emplace_back(graph.tensor(id).dtype, graph.tensor(id).shape);
  return found;
}

Status check_spans(const Supernet& model, std::size_t block) {
  const auto& branches = model.blocks[block].branches;
  if (branches.empty() || branches.front().kind != BranchKind::original)
    return refuse("its first branch is not the original");
  std::set<std::pair<std::size_t, bool>> spans;  // and whether it is narrow
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const auto& branch = branches[i];
    const bool merged = branch.kind == BranchKind::merged;
    if (i > 0 && branch.kind == BranchKind::original) return refuse("it has two originals");
    if (merged ? branch.span < 2 : branch.span != 1)
      return refuse(fmt::format("a branch that is {} stands for {} blocks", to_string(branch.kind),
                                branch.span));
    if (branch.span > model.blocks.size() - block)
      return refuse("a branch stands for blocks beyond the last");
    if (merged && !spans.insert({branch.span, branch.share < 1}).second)
      return refuse(fmt::format("two branches are {}", branch_code(model.blocks[block], i)));
  }
  return {};
}

Status check_branch(const Supernet& model, std::size_t block, const Branch& branch) {
  FLEETFIT_TRY(graph::validate(branch.graph));
  const bool first = block == 0;
  const bool last = block + branch.span == model.blocks.size();
  if ((!first && branch.graph.inputs.size() != 1) || (!last && branch.graph.outputs.size() != 1))
    return refuse("a branch within the chain has not one input and one output");
  const Graph& from = model.blocks[block].branches.front().graph;
  const Graph& to = model.blocks[block + branch.span - 1].branches.front().graph;
  if (shapes(branch.graph, branch.graph.inputs) != shapes(from, from.inputs))
    return refuse("a branch takes another shape than the block");
  if (shapes(branch.graph, branch.graph.outputs) != shapes(to, to.outputs))
    return refuse("a branch gives another shape than what it stands for");
  return {};
}

Status check_block(const Supernet& model, std::size_t block) {
  for (const auto& branch : model.blocks[block].branches) {
    FLEETFIT_TRY(check_branch(model, block, branch));
  }
  if (block == 0) return {};
  const Graph& before = model.blocks[block - 1].branches.front().graph;
  const Graph& here = model.blocks[block].branches.front().graph;
  if (shapes(before, before.outputs) != shapes(here, here.inputs))
    return refuse("it takes another shape than the block before gives");
  return {};
}

Status check_supernet(const Supernet& model) {
  if (model.blocks.empty()) return refuse("it has no blocks");
  for (const auto check : {check_spans, check_block}) {
    for (std::size_t b = 0; b < model.blocks.size(); ++b) {
      if (auto ok = check(model, b); !ok)
        return core::within(fmt::format("block {} ({})", b, model.blocks[b].name), ok.error());
    }
  }
  return {};
}

std::size_t choices(const Supernet& model) {
  return static_cast<std::size_t>(
      std::ranges::count_if(model.blocks, [](const Block& b) { return b.branches.size() > 1; }));
}

}  // namespace

core::Names names_of(BranchKind) {
  static constexpr core::Name kAll[] = {{BranchKind::original, "original"},
                                        {BranchKind::shrunk, "shrunk"},
                                        {BranchKind::merged, "merged"}};
  return {.what = "kind of branch", .all = kAll};
}

std::string branch_code(const Block& block, std::size_t branch) {
  const auto& chosen = block.branches[branch];
  if (chosen.kind == BranchKind::original) return "o";
  if (chosen.kind == BranchKind::merged)
    return fmt::format("m{}{}", chosen.span - 1, chosen.share < 1 ? "s" : "");
  const auto to_here = std::span(block.branches).first(branch + 1);
  return fmt::format("s{}", std::ranges::count(to_here, BranchKind::shrunk, &Branch::kind));
}

Status check_supernets(const std::vector<Supernet>& models) {
  if (models.empty()) return refuse("there is no model");
  std::size_t genes = models.size() > 1 ? 1 : 0;
  for (const auto& model : models) {
    if (auto ok = check_supernet(model); !ok)
      return core::within(fmt::format("model {}", model.name), ok.error());
    genes += choices(model);
  }
  if (genes > space::kMostSlots)
    return refuse(
        fmt::format("{} blocks have a choice, a space holds {}", genes, space::kMostSlots));
  return {};
}

}  // namespace fleetfit::elastic
