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

Encoding genes_encoding(std::span<const Gene> genes) {
  Encoding encoding{.name = "genes"};
  for (const Gene& gene : genes) {
    if (!gene.values.empty()) {
      encoding.features.push_back(gene.name);
      continue;
    }
    for (const auto& choice : gene.choices)
      encoding.features.push_back(fmt::format("{} {}", gene.name, choice));
  }
  return encoding;
}

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

}  // namespace

Space::Space(Description description, std::vector<Gene> genes)
    : name_(std::move(description.name)),
      description_(std::move(description.line)),
      genes_(std::move(genes)),
      encodings_{genes_encoding(genes_)} {}

bool Space::is_active(Design /*design*/, std::size_t /*gene*/) const { return true; }

DesignCount Space::size() const {
  DesignCount count = 1;
  for (const Gene& gene : genes_) count *= gene.choices.size();
  return count;
}

Choice Space::draw(core::Random& random, std::size_t gene) const {
  return static_cast<Choice>(random.below(genes_[gene].choices.size()));
}

Status Space::check_gene(Design design, std::size_t gene) const {
  const auto& [name, choices, values, before] = genes_[gene];
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
    if (auto ok = check_gene(design, gene); !ok) return ok;
  }
  return {};
}

void Space::make_canonical(std::span<Choice> design) const {
  for (std::size_t gene = 0; gene < genes_.size(); ++gene) {
    if (design[gene] != 0 && !is_active(design, gene)) design[gene] = 0;
  }
}

void Space::sample(core::Random& random, std::span<Choice> design) const {
  for (std::size_t gene = 0; gene < genes_.size(); ++gene)
    design[gene] = is_active(design, gene) ? draw(random, gene) : Choice{0};
}

void Space::mutate(core::Random& random, double probability, std::span<Choice> design) const {
  const std::vector<Choice> before(design.begin(), design.end());
  for (std::size_t gene = 0; gene < genes_.size(); ++gene) {
    const std::size_t choices = genes_[gene].choices.size();
    if (!is_active(design, gene)) {
      design[gene] = 0;
    } else if (!is_active(before, gene)) {
      design[gene] = draw(random, gene);
    } else if (choices > 1 && random.chance(probability)) {
      const auto other = random.below(choices - 1);
      design[gene] = static_cast<Choice>(other < design[gene] ? other : other + 1);
    }
  }
}

void Space::crossover(core::Random& random, Design a, Design b, std::span<Choice> child) const {
  for (std::size_t gene = 0; gene < genes_.size(); ++gene) {
    const bool from_a = random.chance(0.5);
    const Design parent = from_a ? a : b;
    const Design other = from_a ? b : a;
    if (!is_active(child, gene)) {
      child[gene] = 0;
    } else if (is_active(parent, gene)) {
      child[gene] = parent[gene];
    } else {
      child[gene] = is_active(other, gene) ? other[gene] : draw(random, gene);
    }
  }
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

Result<std::size_t> Space::find_encoding(std::string_view name) const {
  const auto found = std::ranges::find(encodings_, name, &Encoding::name);
  if (found == encodings_.end()) {
    return fail(ErrorCode::not_found,
                fmt::format("the space {} has no encoding '{}'", name_, name));
  }
  return static_cast<std::size_t>(found - encodings_.begin());
}

void Space::encode(DesignBatch designs, std::size_t encoding, std::span<double> out) const {
  const std::size_t width = encodings_[encoding].features.size();
  assert(out.size() == designs.size() * width);
  for (std::size_t row = 0; row < designs.size(); ++row) {
    const auto features = out.subspan(row * width, width);
    if (encoding == 0) {
      encode_genes(designs[row], features);
    } else {
      encode_one(designs[row], encoding, features);
    }
  }
}

void Space::encode_genes(Design design, std::span<double> out) const {
  std::ranges::fill(out, 0.0);
  std::size_t column = 0;
  for (std::size_t gene = 0; gene < genes_.size(); ++gene) {
    const auto& values = genes_[gene].values;
    if (is_active(design, gene)) {
      if (values.empty()) {
        out[column + design[gene]] = 1;
      } else {
        out[column] = values[design[gene]];
      }
    }
    column += values.empty() ? genes_[gene].choices.size() : 1;
  }
}

void Space::encode_one(Design /*design*/, std::size_t /*encoding*/, std::span<double> out) const {
  std::ranges::fill(out, 0.0);
}

Result<graph::Graph> Space::lower(Design design) const {
  if (auto ok = check(design); !ok) return core::within(name_, ok.error());
  return build(design);
}

std::string Space::format(Design design) const {
  std::string text;
  for (std::size_t gene = 0; gene < genes_.size(); ++gene) {
    if (!is_active(design, gene)) continue;
    text += genes_[gene].before;
    text += genes_[gene].choices[design[gene]];
  }
  return text;
}

Result<std::vector<Choice>> Space::parse(std::string_view text) const {
  std::vector<Choice> design(genes_.size());
  for (std::size_t i = 0; i < genes_.size(); ++i) {
    if (!is_active(design, i)) continue;
    const Gene& gene = genes_[i];
    if (!text.starts_with(gene.before))
      return unreadable(gene, fmt::format("'{}'", gene.before), text);
    text.remove_prefix(gene.before.size());
    const auto choice = leading_choice(gene, text);
    if (!choice) return unreadable(gene, choices_text(gene), text);
    design[i] = *choice;
    text.remove_prefix(gene.choices[*choice].size());
  }
  if (text.empty()) return design;
  return fail(ErrorCode::invalid_input,
              fmt::format("'{}' stands behind the end of the design", text.substr(0, kShownText)));
}

Result<std::vector<Choice>> Space::parse_cells(std::span<const std::string_view> cells) const {
  if (cells.size() == 1) return parse(cells[0]);
  return fail(ErrorCode::invalid_input,
              fmt::format("a design of the space {} has 1 cell, not {}", name_, cells.size()));
}

}  // namespace fleetfit::space
