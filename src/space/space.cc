#include "fleetfit/space/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <optional>

namespace fleetfit::space {
namespace {

constexpr std::size_t kShownChoices = 12;
constexpr std::size_t kShownText = 24;

std::string choices_text(const Gene& gene) {
  if (gene.choices.size() <= kShownChoices) return fmt::format("{}", fmt::join(gene.choices, ", "));
  return fmt::format("{} to {}", gene.choices.front(), gene.choices.back());
}

/// The longest of the gene's choices that the text begins with.
std::optional<Choice> leading_choice(const Gene& gene, std::string_view text) {
  std::optional<Choice> best;
  for (std::size_t i = 0; i < gene.choices.size(); ++i) {
    if (!text.starts_with(gene.choices[i])) continue;
    if (!best || gene.choices[i].size() > gene.choices[*best].size()) best = static_cast<Choice>(i);
  }
  return best;
}

tl::unexpected<Error> unreadable(const Gene& gene, std::string_view wanted, std::string_view rest) {
  const auto found = rest.empty() ? std::string("the text ends")
                                  : fmt::format("found '{}'", rest.substr(0, kShownText));
  return fail(ErrorCode::invalid_input, fmt::format("{}: {}, not {}", gene.name, found, wanted));
}

/// Takes the gene's choice off the front of the text.
Result<Choice> take_choice(const Gene& gene, std::string_view& text) {
  if (!text.starts_with(gene.before))
    return unreadable(gene, fmt::format("'{}'", gene.before), text);
  text.remove_prefix(gene.before.size());
  const auto choice = leading_choice(gene, text);
  if (!choice) return unreadable(gene, choices_text(gene), text);
  text.remove_prefix(gene.choices[*choice].size());
  return *choice;
}

Status expect_end(std::string_view rest) {
  if (rest.empty()) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("'{}' stands behind the end of the design", rest.substr(0, kShownText)));
}

}  // namespace

bool Space::is_active(Design /*design*/, std::size_t /*gene*/) const { return true; }

std::size_t Space::next_active(Design design, std::size_t gene) const {
  while (gene < genes_.size() && !is_active(design, gene)) ++gene;
  return gene;
}

DesignCount Space::size() const {
  DesignCount count = 1;
  for (const Gene& gene : genes_) count *= gene.choices.size();
  return count;
}

Choice Space::draw(core::Random& random, std::size_t gene) const {
  return static_cast<Choice>(random.below(genes_[gene].choices.size()));
}

Status Space::check_gene(Design design, std::size_t gene) const {
  const auto& [name, choices, values, before, column] = genes_[gene];
  if (design[gene] >= choices.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: there is no choice {}, there are {} from 0 on", name, design[gene],
                            choices.size()));
  }
  if (design[gene] != 0 && !is_active(design, gene)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: it is {} and means nothing here, where it has to be 0", name,
                            design[gene]));
  }
  return {};
}

Status Space::check(Design design) const {
  if (design.size() != genes_.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a design of the space {} has {} genes, this one has {}", name_,
                            genes_.size(), design.size()));
  }
  for (std::size_t gene = 0; gene < genes_.size(); ++gene) {
    FLEETFIT_TRY(check_gene(design, gene));
  }
  return {};
}

void Space::make_canonical(std::span<Choice> design) const {
  for (std::size_t gene = 0; gene < genes_.size(); ++gene) {
    if (design[gene] != 0 && !is_active(design, gene)) design[gene] = 0;
  }
}

void Space::sample(core::Random& random, std::span<Choice> design) const {
  std::ranges::fill(design, Choice{0});
  for_active_genes(design, [&](std::size_t gene) { design[gene] = draw(random, gene); });
}

void Space::mutate(core::Random& random, double probability, std::span<Choice> design) const {
  const std::vector<Choice> before(design.begin(), design.end());
  std::ranges::fill(design, Choice{0});
  bool is_changed = false;  // until then a gene is active in both or in none
  for_active_genes(design, [&](std::size_t gene) {
    design[gene] = before[gene];
    if (is_changed && !was_active(before, gene)) {
      design[gene] = draw(random, gene);
    } else if (choice_counts_[gene] > 1 && random.chance(probability)) {
      const auto other = random.below(choice_counts_[gene] - 1);
      design[gene] = static_cast<Choice>(other < design[gene] ? other : other + 1);
      is_changed = true;
    }
  });
}

void Space::crossover(core::Random& random, Design a, Design b, std::span<Choice> child) const {
  constexpr std::size_t kCoins = 64;
  std::uint64_t coins = 0;
  std::size_t tossed = 0;
  std::ranges::fill(child, Choice{0});
  for_active_genes(child, [&](std::size_t gene) {
    coins = tossed++ % kCoins == 0 ? random.next() : coins >> 1;
    const bool from_a = (coins & 1) != 0;
    const Design parent = from_a ? a : b;
    const Design other = from_a ? b : a;
    if (was_active(parent, gene)) {
      child[gene] = parent[gene];
    } else {
      child[gene] = was_active(other, gene) ? other[gene] : draw(random, gene);
    }
  });
}

bool Space::next(std::span<Choice> design) const {
  for (std::size_t gene = genes_.size(); gene-- > 0;) {
    const bool can_grow = design[gene] + std::size_t{1} < genes_[gene].choices.size();
    if (can_grow && is_active(design, gene)) {
      ++design[gene];
      return true;
    }
    design[gene] = 0;
  }
  return false;
}

Result<graph::Graph> Space::lower(Design design) const {
  if (auto ok = check(design); !ok) return core::within(name_, ok.error());
  return build(design);
}

std::string Space::format(Design design) const {
  std::string text;
  for_active_genes(design, [&](std::size_t gene) {
    text += genes_[gene].before;
    text += genes_[gene].choices[design[gene]];
  });
  return text;
}

Result<std::vector<Choice>> Space::parse(std::string_view text) const {
  std::vector<Choice> design(genes_.size());
  for (std::size_t i = next_active(design, 0); i < genes_.size(); i = next_active(design, i + 1)) {
    FLEETFIT_ASSIGN(design[i], take_choice(genes_[i], text));
  }
  FLEETFIT_TRY(expect_end(text));
  return design;
}

std::string Space::cell(Design design, std::size_t column) const {
  std::string text;
  for (std::size_t i = 0; i < genes_.size(); ++i) {
    if (genes_[i].column == column) text += genes_[i].choices[design[i]];
  }
  return text;
}

std::vector<std::string> Space::cells(Design design) const {
  if (columns_.size() == 1) return {format(design)};
  std::vector<std::string> cells;
  for (std::size_t column = 0; column < columns_.size(); ++column)
    cells.push_back(cell(design, column));
  return cells;
}

Status Space::parse_cell(std::string_view text, std::size_t column,
                         std::span<Choice> design) const {
  for (std::size_t i = 0; i < genes_.size(); ++i) {
    if (genes_[i].column != column) continue;
    const auto choice = leading_choice(genes_[i], text);
    if (!choice) return unreadable(genes_[i], choices_text(genes_[i]), text);
    design[i] = *choice;
    text.remove_prefix(genes_[i].choices[*choice].size());
  }
  return expect_end(text);
}

Result<std::vector<Choice>> Space::parse_cells(std::span<const std::string_view> cells) const {
  if (cells.size() != columns_.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a design of the space {} has {} {}, not {}", name_, columns_.size(),
                            columns_.size() == 1 ? "cell" : "cells", cells.size()));
  }
  if (cells.size() == 1) return parse(cells[0]);
  std::vector<Choice> design(genes_.size());
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (auto read = parse_cell(cells[column], column, design); !read)
      return core::within(columns_[column], read.error());
  }
  make_canonical(design);
  return design;
}

}  // namespace fleetfit::space
