#include "space/elastic_stages.h"

#include <fmt/format.h>

#include "space/genes.h"

namespace fleetfit::space {
namespace {

constexpr std::array<std::int64_t, 3> kDepths = {2, 3, 4};
constexpr std::array<std::int64_t, 3> kKernels = {3, 5, 7};
constexpr std::array<std::int64_t, 3> kExpansions = {3, 4, 6};

constexpr std::size_t kKernelColumn = 0;
constexpr std::size_t kExpansionColumn = 1;
constexpr std::size_t kDepthColumn = 2;

std::vector<std::string> block_kinds() {
  std::vector<std::string> kinds;
  for (const auto kernel : kKernels) {
    for (const auto expansion : kExpansions)
      kinds.push_back(fmt::format("k{}_e{}", kernel, expansion));
  }
  return kinds;
}

/// Genes of one meaning: the first has the letters before it, the others follow digit by digit.
void add_digits(std::vector<Gene>& genes, std::span<const std::string> names, const Gene& like) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    genes.push_back(like);
    genes.back().name = names[i];
    if (i > 0) genes.back().before.clear();
  }
}

std::vector<std::string> numbered(std::string_view thing, std::size_t count,
                                  std::string_view what) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i <= count; ++i) names.push_back(fmt::format("{} {} {}", thing, i, what));
  return names;
}

Gene digit_gene(std::span<const std::int64_t> values, std::string before, std::size_t column) {
  Gene gene = amounts("", "", values, std::move(before));
  gene.column = column;
  return gene;
}

}  // namespace

std::vector<Gene> ElasticStages::genes() const {
  std::vector<Gene> genes;
  add_digits(genes, numbered("stage", kStages, "depth"), digit_gene(kDepths, "d", kDepthColumn));
  add_digits(genes, numbered("block", blocks_, "kernel"),
             digit_gene(kKernels, "-ks", kKernelColumn));
  add_digits(genes, numbered("block", blocks_, "expansion"),
             digit_gene(kExpansions, "-e", kExpansionColumn));
  return genes;
}

std::vector<Slot> ElasticStages::slots() const {
  std::vector<Slot> slots;
  for (std::size_t block = 0; block < blocks_; ++block) {
    slots.push_back({.name = fmt::format("block {}", block + 1),
                     .genes = {kStages + block, kStages + blocks_ + block},
                     .kinds = block_kinds()});
  }
  return slots;
}

std::size_t ElasticStages::depth(Design design, std::size_t stage) {
  return static_cast<std::size_t>(kDepths[design[stage]]);
}

bool ElasticStages::is_active(Design design, std::size_t gene) const {
  if (gene < kStages || gene >= gene_count()) return true;
  const std::size_t block = (gene - kStages) % blocks_;
  const std::size_t stage = block / kMostDepth;
  return stage >= kStages || block % kMostDepth < depth(design, stage);
}

SlotSet ElasticStages::active_slots(Design design) const {
  SlotSet active;
  for (std::size_t stage = 0; stage < kStages; ++stage)
    active |= SlotSet((1ULL << depth(design, stage)) - 1) << (stage * kMostDepth);
  for (std::size_t block = kStages * kMostDepth; block < blocks_; ++block) active.set(block);
  return active;
}

DesignCount ElasticStages::size() const {
  const DesignCount block = kKernels.size() * kExpansions.size();
  DesignCount stage;
  for (const auto depth : kDepths) {
    DesignCount blocks = 1;
    for (std::int64_t i = 0; i < depth; ++i) blocks *= block;
    stage += blocks;
  }
  DesignCount count = 1;
  for (std::size_t i = 0; i < kStages; ++i) count *= stage;
  for (std::size_t i = kStages * kMostDepth; i < blocks_; ++i) count *= block;
  return count;
}

graph::SearchedLayer ElasticStages::layer(Design design, std::size_t block) const {
  return {.kernel = kKernels[design[kStages + block]],
          .expansion = kExpansions[design[kStages + blocks_ + block]]};
}

std::vector<graph::SearchedLayer> ElasticStages::layers(Design design, std::size_t stage) const {
  std::vector<graph::SearchedLayer> layers;
  for (std::size_t i = 0; i < depth(design, stage); ++i)
    layers.push_back(layer(design, stage * kMostDepth + i));
  return layers;
}

}  // namespace fleetfit::space
