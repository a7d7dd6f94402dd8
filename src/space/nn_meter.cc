// Spaces that vary kernels and channels of known networks block by block, as nn-Meter does.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "fleetfit/graph/mobilenet_v3.h"
#include "space/all_spaces.h"

namespace fleetfit::space {
namespace {

using graph::NetBuilder;
using graph::TensorId;

/// Blocks in sequence with channels of their own: a block's input is as wide as the output of the
/// one before it. A gene for the first input, then kernel, middle and output of each block, where
/// the middle is either an expansion or a number of channels. Each block has four slots: input,
/// kernel, middle and output.
class BlockChain {
 public:
  struct Block {
    std::vector<std::int64_t> kernels;
    std::vector<std::int64_t> middles;
    std::vector<std::int64_t> outputs;
  };

  struct Middle {
    std::string name;    ///< "expansion"
    std::string prefix;  ///< of a choice's text: "e"
  };

  BlockChain(std::vector<std::int64_t> inputs, std::vector<Block> blocks, Middle middle)
      : inputs_(std::move(inputs)), blocks_(std::move(blocks)), middle_(std::move(middle)) {}

  std::vector<Gene> genes() const;
  std::vector<Slot> slots() const;

  std::size_t size() const { return blocks_.size(); }

  // What a design chose.
  std::int64_t first_input(Design design) const { return inputs_[design[0]]; }
  std::int64_t kernel(Design design, std::size_t block) const;
  std::int64_t middle(Design design, std::size_t block) const;
  std::int64_t output(Design design, std::size_t block) const;

 private:
  std::vector<std::int64_t> inputs_;
  std::vector<Block> blocks_;
  Middle middle_;
};

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

/// 0.2, 0.4, … 1.8 times the channels, rounded to multiples of 8, each once: the range in which
/// nn-Meter varies the channels of known networks.
std::vector<std::int64_t> channels_around(std::int64_t channels) {
  constexpr int kFirstTenths = 2;
  constexpr int kLastTenths = 18;
  std::vector<std::int64_t> values;
  for (int tenths = kFirstTenths; tenths <= kLastTenths; tenths += 2) {
    const std::int64_t value = graph::scaled_channels(channels, tenths / 10.0);
    if (values.empty() || values.back() != value) values.push_back(value);
  }
  return values;
}

// --- MobileNetV3

constexpr float kEpsilon = 1e-3F;

/// MobileNetV3-Large without blocks that repeat the one before them.
std::vector<graph::MobileNetV3Block> large_blocks() {
  std::vector<graph::MobileNetV3Block> blocks;
  std::ranges::unique_copy(graph::mobilenet_v3_large(), std::back_inserter(blocks));
  return blocks;
}

BlockChain chain_of(const std::vector<graph::MobileNetV3Block>& known) {
  constexpr std::int64_t kStem = 16;
  std::vector<BlockChain::Block> blocks;
  for (const auto& block : known) {
    blocks.push_back({.kernels = {1, 3, 5, 7, 9},
                      .middles = channels_around(block.expanded),
                      .outputs = channels_around(block.out)});
  }
  return {channels_around(kStem), std::move(blocks), {.name = "middle", .prefix = "m"}};
}

class MobileNetV3 final : public Space {
 public:
  MobileNetV3() : MobileNetV3(chain_of(large_blocks())) {}

 protected:
  Result<graph::Graph> build(Design design) const override {
    return network_on_image(name(), kImage, [&](NetBuilder& net, TensorId x) {
      x = net.conv_bn(x, {.out = chain_.first_input(design), .kernel = 3, .stride = 2},
                      graph::kHardSwish, kEpsilon);
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        auto block = blocks_[i];
        block.kernel = chain_.kernel(design, i);
        block.expanded = chain_.middle(design, i);
        block.out = chain_.output(design, i);
        x = graph::mobilenet_v3_block(net, x, block);
      }
      x = net.conv_bn(x, {.out = 960}, graph::kHardSwish, kEpsilon);
      x = net.activate(graph::classify(net, x, 1280), graph::kHardSwish);
      return net.linear(x, kClasses);
    });
  }

 private:
  explicit MobileNetV3(BlockChain chain)
      : Space({.name = "mobilenetv3",
               .line = "MobileNetV3 with channels and kernels of its own in each of 12 blocks "
                       "(nn-Meter), ImageNet"},
              chain.genes(), chain.slots()),
        chain_(std::move(chain)) {}

  std::vector<graph::MobileNetV3Block> blocks_ = large_blocks();
  BlockChain chain_;
};

// --- ProxylessNAS

constexpr std::int64_t kFirstBlock = 16;

struct Stage {
  std::int64_t out;
  std::int64_t stride;
  std::size_t blocks;
};
constexpr std::array<Stage, 6> kStages = {
    {{24, 2, 4}, {40, 2, 4}, {80, 2, 4}, {96, 1, 4}, {192, 2, 4}, {320, 1, 1}}};

BlockChain proxyless_chain() {
  std::vector<BlockChain::Block> blocks;
  for (const Stage& stage : kStages) {
    blocks.insert(blocks.end(), stage.blocks,
                  {.kernels = {3, 5, 7}, .middles = {3, 6}, .outputs = channels_around(stage.out)});
  }
  return {channels_around(kFirstBlock), std::move(blocks), {.name = "expansion", .prefix = "e"}};
}

class ProxylessNas final : public Space {
 public:
  ProxylessNas() : ProxylessNas(proxyless_chain()) {}

 protected:
  Result<graph::Graph> build(Design design) const override {
    std::vector<graph::SearchedStage> blocks = {{chain_.first_input(design), 1, {{3, 1}}}};
    std::size_t number = 0;
    for (const Stage& stage : kStages) {
      for (std::size_t i = 0; i < stage.blocks; ++i, ++number) {
        blocks.push_back({chain_.output(design, number),
                          i == 0 ? stage.stride : 1,
                          {{chain_.kernel(design, number), chain_.middle(design, number)}}});
      }
    }
    return network_on_image(name(), kImage, [&](NetBuilder& net, TensorId x) {
      x = net.conv_bn(x, {.out = 32, .kernel = 3, .stride = 2}, graph::kRelu6, kEpsilon);
      x = graph::searched_stages(net, x, {}, blocks, {.epsilon = kEpsilon});
      x = net.conv_bn(x, {.out = 1280}, graph::kRelu6, kEpsilon);
      return graph::classify(net, x, kClasses);
    });
  }

 private:
  explicit ProxylessNas(BlockChain chain)
      : Space({.name = "proxylessnas",
               .line = "ProxylessNAS's 21 blocks with kernels, expansions and channels of their "
                       "own (nn-Meter), ImageNet"},
              chain.genes(), chain.slots()),
        chain_(std::move(chain)) {}

  BlockChain chain_;
};

}  // namespace

std::unique_ptr<const Space> make_mobilenetv3() { return std::make_unique<MobileNetV3>(); }

std::unique_ptr<const Space> make_proxylessnas() { return std::make_unique<ProxylessNas>(); }

}  // namespace fleetfit::space
