#include "fleetfit/search/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace fleetfit::search {
namespace {

using Genes = std::vector<space::Choice>;

/// Changes one design of a space by whole blocks.
class Depth {
 public:
  explicit Depth(const space::Space& space) : space_(space) {
    for (std::size_t gene = 0; gene < space.genes().size(); ++gene) {
      const auto& [name, choices, values, before, column] = space.genes()[gene];
      if (!values.empty() && name.find("depth") != std::string::npos) genes_.push_back(gene);
    }
  }

  bool empty() const { return genes_.empty(); }

  /// With one block more (1) or less (-1); nothing if there is no room for that.
  std::optional<Genes> changed(const Genes& design, int blocks) const {
    std::optional<std::size_t> chosen;
    for (const std::size_t gene : genes_) {
      if (!space_.is_active(design, gene) || !neighbour(design, gene, blocks)) continue;
      const double here = amount(design, gene);
      const bool better = !chosen || (blocks > 0 ? here <= amount(design, *chosen)
                                                 : here >= amount(design, *chosen));
      if (better) chosen = gene;
    }
    if (!chosen) return std::nullopt;
    Genes next = design;
    next[*chosen] = *neighbour(design, *chosen, blocks);
    fill_in(design, next);
    return next;
  }

 private:
  double amount(const Genes& design, std::size_t gene) const {
    return space_.genes()[gene].values[design[gene]];
  }

  /// The choice with the next larger or smaller amount.
  std::optional<space::Choice> neighbour(const Genes& design, std::size_t gene, int blocks) const {
    const auto& values = space_.genes()[gene].values;
    std::optional<space::Choice> nearest;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double step = (values[i] - amount(design, gene)) * blocks;
      if (step <= 0) continue;
      if (!nearest || step < (values[*nearest] - amount(design, gene)) * blocks)
        nearest = static_cast<space::Choice>(i);
    }
    return nearest;
  }

  /// Gives genes that have become active a choice, and those that have ceased to be none.
  void fill_in(const Genes& before, Genes& design) const {
    for (std::size_t gene = 0; gene < design.size(); ++gene) {
      if (!space_.is_active(design, gene)) {
        design[gene] = 0;
      } else if (!space_.is_active(before, gene)) {
        design[gene] = choice_before(design, gene);
      }
    }
  }

  space::Choice choice_before(const Genes& design, std::size_t gene) const {
    for (std::size_t other = gene; other-- > 0;) {
      const bool alike = space_.genes()[other].choices == space_.genes()[gene].choices;
      if (alike && space_.is_active(design, other)) return design[other];
    }
    return 0;
  }

  const space::Space& space_;
  std::vector<std::size_t> genes_;
};

}  // namespace

Result<space::Population> scaled_designs(const space::Space& space, space::Design design,
                                         const ScalingOptions& options) {
  FLEETFIT_TRY(space.check(design));
  const Depth depth(space);
  if (depth.empty()) {
    return fail(ErrorCode::unsupported,
                fmt::format("the space {} has no gene of depth to be scaled", space.name()));
  }
  const Genes start(design.begin(), design.end());
  std::vector<Genes> shallower;
  std::vector<Genes> deeper;
  for (const auto& [blocks, list] : {std::pair{-1, &shallower}, std::pair{1, &deeper}}) {
    std::optional<Genes> next = start;
    for (int i = 0; i < options.most_blocks && (next = depth.changed(*next, blocks)); ++i)
      list->push_back(*next);
  }
  space::Population designs(design.size());
  std::ranges::reverse(shallower);
  for (const auto& one : shallower) designs.add(one);
  designs.add(design);
  for (const auto& one : deeper) designs.add(one);
  return designs;
}

}  // namespace fleetfit::search
