#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "fleetfit/elastic/supernet.h"

namespace fleetfit::elastic {
namespace {

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
