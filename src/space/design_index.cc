#include "fleetfit/space/design_index.h"

#include <algorithm>
#include <cstring>

#include "fleetfit/core/random.h"

namespace fleetfit::space {
namespace {

constexpr std::size_t kMostDirect = std::size_t{1} << 22;
constexpr std::size_t kFirstPlaces = 64;

/// The choices of each gene, if all combinations of them can have a place; else nothing.
std::vector<std::size_t> small_radices(const Space& space) {
  std::vector<std::size_t> radices;
  std::size_t combinations = 1;
  for (const Gene& gene : space.genes()) {
    radices.push_back(gene.choices.size());
    combinations *= gene.choices.size();
    if (combinations > kMostDirect) return {};
  }
  return radices;
}

std::size_t combinations_of(const std::vector<std::size_t>& radices) {
  std::size_t combinations = 1;
  for (const auto radix : radices) combinations *= radix;
  return combinations;
}

/// Of eight bytes at a time: designs may have hundreds of genes.
std::size_t hash(Design design) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
  const auto bytes = std::as_bytes(design);
  std::uint64_t hash = bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[i], std::min(sizeof word, bytes.size() - i));
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(core::mix(hash, 0));
}

}  // namespace

DesignIndex::DesignIndex(const Space& space)
    : designs_(space.genes().size()),
      radices_(small_radices(space)),
      places_(is_direct() ? combinations_of(radices_) : kFirstPlaces) {}

/// Where the design stands, or would stand.
std::size_t DesignIndex::place(Design design) const {
  if (is_direct()) {
    std::size_t place = 0;
    for (std::size_t gene = 0; gene < design.size(); ++gene)
      place = place * radices_[gene] + design[gene];
    return place;
  }
  const std::size_t mask = places_.size() - 1;
  std::size_t place = hash(design) & mask;
  while (places_[place] != 0 && !std::ranges::equal(designs_[places_[place] - 1], design))
    place = (place + 1) & mask;
  return place;
}

std::optional<std::size_t> DesignIndex::find(Design design) const {
  const std::uint32_t number = places_[place(design)];
  if (number == 0) return std::nullopt;
  return number - 1;
}

bool DesignIndex::add(Design design) {
  if (!is_direct() && 2 * (size() + 1) > places_.size()) grow();
  auto& number = places_[place(design)];
  if (number != 0) return false;
  designs_.add(design);
  number = static_cast<std::uint32_t>(size());
  return true;
}

void DesignIndex::grow() {
  places_.assign(2 * places_.size(), 0);
  // All are different, so that those that have no place yet are never met.
  for (std::size_t i = 0; i < size(); ++i)
    places_[place(designs_.batch()[i])] = static_cast<std::uint32_t>(i + 1);
}

}  // namespace fleetfit::space
