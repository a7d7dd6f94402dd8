#include "space/block_chain.h"

#include <fmt/format.h>

#include "space/genes.h"

namespace fleetfit::space {
namespace {

// Genes of a block, in the order in which they stand behind that of the first input.
constexpr std::size_t kKernel = 0;
constexpr std::size_t kMiddle = 1;
constexpr std::size_t kOutput = 2;
constexpr std::size_t kBlockGenes = 3;

std::size_t gene_of(std::size_t block, std::size_t which) {
  return 1 + block * kBlockGenes + which;
}

/// The gene of the first input, or of the output of the block before.
std::size_t input_gene(std::size_t block) { return block == 0 ? 0 : gene_of(block - 1, kOutput); }

}  // namespace

std::vector<Gene> BlockChain::genes() const {
  std::vector<Gene> genes = {amounts("first channels", "", inputs_, "")};
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    const auto named = [&](std::string_view what) {
      return fmt::format("block {} {}", block + 1, what);
    };
    const auto& [kernels, middles, outputs] = blocks_[block];
    genes.push_back(amounts(named("kernel"), "k", kernels, "/"));
    genes.push_back(amounts(named(middle_.name), middle_.prefix, middles));
    genes.push_back(amounts(named("channels"), "", outputs));
  }
  return genes;
}

std::vector<Slot> BlockChain::slots() const {
  std::vector<Slot> slots;
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    const auto add = [&](std::string_view what, std::size_t gene) {
      slots.push_back({.name = fmt::format("block {} {}", block + 1, what), .genes = {gene}});
    };
    add("input", input_gene(block));
    add("kernel", gene_of(block, kKernel));
    add(middle_.name, gene_of(block, kMiddle));
    add("output", gene_of(block, kOutput));
  }
  return slots;
}

std::int64_t BlockChain::kernel(Design design, std::size_t block) const {
  return blocks_[block].kernels[design[gene_of(block, kKernel)]];
}

std::int64_t BlockChain::middle(Design design, std::size_t block) const {
  return blocks_[block].middles[design[gene_of(block, kMiddle)]];
}

std::int64_t BlockChain::output(Design design, std::size_t block) const {
  return blocks_[block].outputs[design[gene_of(block, kOutput)]];
}

}  // namespace fleetfit::space
