#include <algorithm>
#include <array>
#include <cassert>

#include "fleetfit/transfer/linear_proxy.h"

namespace fleetfit::transfer {
namespace {

constexpr std::uint64_t kMostDesigns = 1U << 17U;

/// Whether every gene means something in every design.
bool is_always_active(const space::Space& space) {
  space::DesignCount combinations = 1;
  for (const auto& gene : space.genes()) combinations *= gene.choices.size();
  return combinations == space.size();
}

}  // namespace

std::size_t operator_columns(const space::Space& space) { return space.column_counts().size(); }

bool has_dead_paths(const space::Space& space) {
  std::size_t kinds = 0;
  for (const auto& count : space.column_counts())
    kinds = std::max<std::size_t>(kinds, count.kind + 1);
  return space.encodings()[*space.find_encoding("counts")].features.size() > kinds;
}

std::optional<space::DesignIndex> all_designs(const space::Space& space) {
  const auto count = space.size().exact();
  if (!count || *count > kMostDesigns) return std::nullopt;
  space::DesignIndex index(space);
  std::vector<space::Choice> design(space.genes().size());
  do index.add(design);
  while (space.next(design));
  return index;
}

OperatorPricer::OperatorPricer(const space::Space& space, OperatorPrices prices)
    : space_(&space), prices_(std::move(prices)) {
  if (!is_always_active(space)) return;
  std::size_t first = 0;
  for (const auto& slot : space.slots()) {
    FixedSlot fixed{.first_column = first, .genes = {}};
    std::size_t choices = 1;
    for (const auto gene : slot.genes) {
      fixed.genes.emplace_back(gene, space.genes()[gene].choices.size());
      choices *= space.genes()[gene].choices.size();
    }
    fixed_.push_back(std::move(fixed));
    first += choices;
  }
}

void OperatorPricer::price(space::DesignBatch designs, std::span<double> out) const {
  assert(out.size() == designs.size());
  std::ranges::fill(out, prices_.constant);
  if (!prices_.placed.empty() && !fixed_.empty()) {
    price_fixed(designs, out);
  } else {
    add_taken(designs, "one-hot", prices_.placed, out);
  }
  add_taken(designs, "live", prices_.live, out);
}

void OperatorPricer::price_fixed(space::DesignBatch designs, std::span<double> out) const {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const space::Design design = designs[i];
    double sum = 0;
    for (const auto& slot : fixed_) {
      std::size_t joint = 0;
      for (const auto& [gene, choices] : slot.genes) joint = joint * choices + design[gene];
      sum += prices_.placed[slot.first_column + joint];
    }
    out[i] += sum;
  }
}

void OperatorPricer::add_taken(space::DesignBatch designs, std::string_view encoding,
                               std::span<const double> prices, std::span<double> out) const {
  if (prices.empty()) return;
  const std::size_t number = *space_->find_encoding(encoding);
  std::array<std::uint32_t, space::kMostSlots + 1> columns{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t count = space_->taken_columns(designs[i], number, columns);
    // The last one is the constant.
    for (std::size_t k = 0; k + 1 < count; ++k) out[i] += prices[columns[k]];
  }
}

}  // namespace fleetfit::transfer
