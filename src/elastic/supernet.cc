#include "fleetfit/elastic/supernet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

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
      FLEETFIT_TRY(
          core::within(fmt::format("block {} ({})", b, model.blocks[b].name), check(model, b)));
    }
  }
  return {};
}

std::size_t choices(const Supernet& model) {
  return static_cast<std::size_t>(
      std::ranges::count_if(model.blocks, [](const Block& b) { return b.branches.size() > 1; }));
}

/// Owner of the gene that chooses the model.
constexpr std::size_t kNoBlock = static_cast<std::size_t>(-1);

std::vector<std::string> different_names(const std::vector<Supernet>& models) {
  std::vector<std::string> names;
  for (const auto& model : models) {
    std::string name = model.name.empty() ? "model" : model.name;
    for (int i = 2; std::ranges::find(names, name) != names.end(); ++i)
      name = fmt::format("{}#{}", model.name, i);
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> choices_of(const Block& block) {
  std::vector<std::string> choices;
  for (std::size_t i = 0; i < block.branches.size(); ++i) choices.push_back(branch_code(block, i));
  return choices;
}

/// Ways from the first block to the end.
space::DesignCount ways_through(const Supernet& model) {
  const std::size_t blocks = model.blocks.size();
  std::vector<space::DesignCount> ways(blocks + 1);
  ways[blocks] = 1;
  for (std::size_t b = blocks; b-- > 0;) {
    for (const auto& branch : model.blocks[b].branches) ways[b] += ways[b + branch.span];
  }
  return ways.front();
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
    FLEETFIT_TRY(core::within(fmt::format("model {}", model.name), check_supernet(model)));
    genes += choices(model);
  }
  if (genes > space::kMostSlots)
    return refuse(
        fmt::format("{} blocks have a choice, a space holds {}", genes, space::kMostSlots));
  return {};
}

struct SubnetSpace::Layout {
  std::vector<space::Gene> genes;
  std::vector<Owner> owners;
  std::vector<std::size_t> first_genes;
};

SubnetSpace::Layout SubnetSpace::lay_out(const std::vector<Supernet>& models) {
  Layout layout;
  const auto names = different_names(models);
  const bool has_choice = std::ranges::any_of(models, [](const Supernet& model) {
    return std::ranges::any_of(model.blocks, [](const Block& b) { return b.branches.size() > 1; });
  });
  const bool names_model = models.size() > 1 || !has_choice;  // no space is without genes
  if (names_model) {
    layout.genes.push_back({.name = "model", .choices = names});
    layout.owners.push_back({.block = kNoBlock});
  }
  for (std::size_t m = 0; m < models.size(); ++m) {
    layout.first_genes.push_back(layout.genes.size());
    const auto prefix = models.size() > 1 ? names[m] + " " : std::string();
    std::string before = names_model ? ":" : "";
    for (std::size_t b = 0; b < models[m].blocks.size(); ++b) {
      const auto& block = models[m].blocks[b];
      if (block.branches.size() < 2) continue;
      layout.genes.push_back({.name = fmt::format("{}block {}", prefix, b),
                              .choices = choices_of(block),
                              .before = std::exchange(before, "-")});
      Owner owner{.model = m, .block = b};
      for (const auto& branch : block.branches) owner.spans.push_back(branch.span);
      layout.owners.push_back(std::move(owner));
    }
  }
  layout.first_genes.push_back(layout.genes.size());
  return layout;
}

SubnetSpace::SubnetSpace(const std::vector<Supernet>& models)
    : SubnetSpace(lay_out(models), models) {}

SubnetSpace::SubnetSpace(Layout layout, const std::vector<Supernet>& models)
    : Space({.name = fmt::format("subnets-of-{}", fmt::join(different_names(models), "+")),
             .line = "the subnets of an elastic model"},
            std::move(layout.genes)),
      owners_(std::move(layout.owners)),
      first_genes_(std::move(layout.first_genes)),
      models_(models) {}

std::size_t SubnetSpace::model_of(space::Design design) const {
  return owners_.front().block == kNoBlock ? design.front() : 0;
}

bool SubnetSpace::is_active(space::Design design, std::size_t gene) const {
  const Owner& owner = owners_[gene];
  if (owner.block == kNoBlock) return true;
  if (owner.model != model_of(design)) return false;
  std::size_t next = 0;  // first block that no earlier choice stands for
  for (std::size_t g = first_genes_[owner.model]; g < gene; ++g) {
    if (owners_[g].block >= next) next = owners_[g].block + owners_[g].spans[design[g]];
  }
  return owner.block >= next;
}

space::SlotSet SubnetSpace::active_slots(space::Design design) const {
  space::SlotSet active;
  if (owners_.front().block == kNoBlock) active.set(0);
  const std::size_t model = model_of(design);
  std::size_t next = 0;
  for (std::size_t g = first_genes_[model]; g < first_genes_[model + 1]; ++g) {
    if (owners_[g].block < next) continue;
    active.set(g);
    next = owners_[g].block + owners_[g].spans[design[g]];
  }
  return active;
}

space::DesignCount SubnetSpace::size() const {
  space::DesignCount count;
  for (const auto& model : models_) count += ways_through(model);
  return count;
}

std::vector<BranchId> SubnetSpace::path(space::Design design) const {
  const std::size_t model = model_of(design);
  const auto& blocks = models_[model].blocks;
  std::vector<BranchId> path;
  std::size_t gene = first_genes_[model];
  for (std::size_t b = 0; b < blocks.size();) {
    while (gene < first_genes_[model + 1] && owners_[gene].block < b) ++gene;
    const bool chosen = gene < first_genes_[model + 1] && owners_[gene].block == b;
    const std::size_t branch = chosen ? design[gene] : 0;
    path.push_back({.model = model, .block = b, .branch = branch});
    b += blocks[b].branches[branch].span;
  }
  return path;
}

std::vector<space::Choice> SubnetSpace::original(std::size_t model) const {
  std::vector<space::Choice> design(genes().size());
  if (owners_.front().block == kNoBlock) design.front() = static_cast<space::Choice>(model);
  return design;
}

std::optional<std::size_t> SubnetSpace::gene_of(std::size_t model, std::size_t block) const {
  for (std::size_t g = first_genes_[model]; g < first_genes_[model + 1]; ++g) {
    if (owners_[g].block == block) return g;
  }
  return std::nullopt;
}

Result<graph::Graph> SubnetSpace::build(space::Design design) const {
  return join(models_, path(design));
}

}  // namespace fleetfit::elastic
