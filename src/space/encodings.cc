#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <map>

#include "fleetfit/space/space.h"

namespace fleetfit::space {
namespace {

// The encodings that all spaces have, in their order.
constexpr std::size_t kGenes = 0;
constexpr std::size_t kOneHot = 1;
constexpr std::size_t kLive = 2;
constexpr std::size_t kCounts = 3;

/// A gene with more amounts than these is no choice between kinds.
constexpr std::size_t kMostKinds = 16;

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

std::vector<Slot> slot_for_each(std::span<const Gene> genes) {
  std::vector<Slot> slots;
  for (std::size_t gene = 0; gene < genes.size(); ++gene)
    slots.push_back({.name = genes[gene].name, .genes = {gene}});
  return slots;
}

/// "block 3 kernel" is the kernel of some block.
std::string without_numbers(std::string_view name) {
  std::string kept;
  while (!name.empty()) {
    const auto word = name.substr(0, name.find(' '));
    name.remove_prefix(std::min(word.size() + 1, name.size()));
    const bool is_number =
        std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c); });
    if (is_number) continue;
    if (!kept.empty()) kept += ' ';
    kept += word;
  }
  return kept;
}

}  // namespace

Space::Space(Description description, std::vector<Gene> genes, std::vector<Slot> slots)
    : name_(std::move(description.name)),
      description_(std::move(description.line)),
      columns_(std::move(description.columns)),
      dead_paths_(description.dead_paths),
      genes_(std::move(genes)),
      slots_(slots.empty() ? slot_for_each(genes_) : std::move(slots)),
      encodings_{genes_encoding(genes_)} {
  assert(slots_.size() <= kMostSlots);
  for (const Gene& gene : genes_) choice_counts_.push_back(gene.choices.size());
  add_one_hot_encodings();
  add_counts_encoding();
}

std::size_t Space::joint_choices(const Slot& slot) const {
  std::size_t count = 1;
  for (const auto gene : slot.genes) count *= choice_counts_[gene];
  return count;
}

std::size_t Space::joint_choice(Design design, const Slot& slot) const {
  std::size_t joint = 0;
  for (const auto gene : slot.genes) joint = joint * choice_counts_[gene] + design[gene];
  return joint;
}

std::string Space::joint_text(const Slot& slot, std::size_t joint) const {
  if (!slot.kinds.empty()) return slot.kinds[joint];
  std::vector<std::string_view> texts(slot.genes.size());
  for (std::size_t i = texts.size(); i-- > 0;) {
    const auto& choices = genes_[slot.genes[i]].choices;
    texts[i] = choices[joint % choices.size()];
    joint /= choices.size();
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

void Space::add_one_hot_encodings() {
  Encoding encoding{.name = "one-hot"};
  for (const Slot& slot : slots_) {
    first_columns_.push_back(static_cast<std::uint32_t>(encoding.features.size()));
    const std::size_t joint_count = joint_choices(slot);
    for (std::size_t joint = 0; joint < joint_count; ++joint)
      encoding.features.push_back(fmt::format("{} {}", slot.name, joint_text(slot, joint)));
  }
  first_columns_.push_back(static_cast<std::uint32_t>(encoding.features.size()));
  encoding.features.emplace_back("constant");
  encodings_.push_back(encoding);
  encoding.name = "live";
  encodings_.push_back(std::move(encoding));
}

/// Name and amount of what each joint choice is counted as.
std::vector<std::pair<std::string, double>> Space::kinds_of(const Slot& slot) const {
  std::vector<std::pair<std::string, double>> kinds;
  const auto& values = genes_[slot.genes.front()].values;
  const std::string role = without_numbers(slot.name);
  const std::size_t joint_count = joint_choices(slot);
  const bool is_amount = slot.genes.size() == 1 && slot.kinds.empty() && values.size() > kMostKinds;
  for (std::size_t joint = 0; joint < joint_count; ++joint) {
    if (is_amount) {
      kinds.emplace_back(role, values[joint]);
    } else if (slot.kinds.empty()) {
      kinds.emplace_back(fmt::format("{} {}", role, joint_text(slot, joint)), 1.0);
    } else {
      kinds.emplace_back(slot.kinds[joint], 1.0);
    }
  }
  return kinds;
}

void Space::add_counts_encoding() {
  Encoding encoding{.name = "counts"};
  std::map<std::string, std::uint32_t> known;
  for (const Slot& slot : slots_) {
    for (const auto& [kind, amount] : kinds_of(slot)) {
      const auto number = static_cast<std::uint32_t>(known.size());
      const auto [found, is_new] = known.try_emplace(kind, number);
      if (is_new) encoding.features.push_back(kind);
      counts_.push_back({.kind = found->second, .amount = amount});
    }
  }
  if (dead_paths_ == DeadPaths::possible) {
    for (std::size_t kind = 0; kind < known.size(); ++kind)
      encoding.features.push_back("live " + encoding.features[kind]);
  }
  encodings_.push_back(std::move(encoding));
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
  std::ranges::fill(out, 0.0);
  for (std::size_t row = 0; row < designs.size(); ++row) {
    const auto features = out.subspan(row * width, width);
    switch (encoding) {
      case kGenes:
        encode_genes(designs[row], features);
        break;
      case kOneHot:
      case kLive:
        encode_ones(designs[row], encoding, features);
        break;
      case kCounts:
        encode_counts(designs[row], features);
        break;
      default:
        encode_one(designs[row], encoding, features);
    }
  }
}

void Space::encode_genes(Design design, std::span<double> out) const {
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

SlotSet Space::active_slots(Design design) const {
  SlotSet active;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    active[slot] = std::ranges::all_of(slots_[slot].genes,
                                       [&](std::size_t gene) { return is_active(design, gene); });
  }
  return active;
}

std::size_t Space::taken_columns(Design design, std::size_t encoding,
                                 std::span<std::uint32_t> out) const {
  assert(encoding == kOneHot || encoding == kLive);
  const SlotSet there = encoding == kLive ? live_slots(design) : active_slots(design);
  std::size_t count = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!there[slot]) continue;
    const auto joint = static_cast<std::uint32_t>(joint_choice(design, slots_[slot]));
    out[count++] = first_columns_[slot] + joint;
  }
  out[count++] = first_columns_.back();
  return count;
}

void Space::encode_ones(Design design, std::size_t encoding, std::span<double> out) const {
  std::array<std::uint32_t, kMostSlots + 1> columns;  // NOLINT(*-member-init): written before read
  const std::size_t count = taken_columns(design, encoding, columns);
  for (const auto column : std::span(columns).first(count)) out[column] = 1;
}

void Space::encode_counts(Design design, std::span<double> out) const {
  const SlotSet active = active_slots(design);
  const bool tells_live = dead_paths_ == DeadPaths::possible;
  const SlotSet live = tells_live ? live_slots(design) : active;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!active[slot]) continue;
    const auto& [kind, amount] = counts_[first_columns_[slot] + joint_choice(design, slots_[slot])];
    out[kind] += amount;
    if (tells_live && live[slot]) out[out.size() / 2 + kind] += amount;
  }
}

void Space::encode_one(Design /*design*/, std::size_t /*encoding*/,
                       std::span<double> /*out*/) const {}

}  // namespace fleetfit::space
