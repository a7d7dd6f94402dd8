// Spaces of subnets as Once-for-All's supernets have them.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "fleetfit/graph/once_for_all.h"
#include "space/all_spaces.h"

namespace fleetfit::space {
namespace {

/// What Once-for-All's supernets have in common: five stages with 2 to 4 blocks each, and blocks
/// behind them that are always there; for each block a kernel of 3, 5 or 7 and an expansion of 3, 4
/// or 6. Genes are the depths of the stages, then the kernels and then the expansions of all
/// blocks; key columns are ks, e and d, in this order.
class ElasticStages {
 public:
  static constexpr std::size_t kStages = 5;
  static constexpr std::size_t kMostDepth = 4;

  constexpr explicit ElasticStages(std::size_t blocks_behind)
      : blocks_(kStages * kMostDepth + blocks_behind) {}

  std::vector<Gene> genes() const;

  /// A slot for each block: nine kinds, or nothing.
  std::vector<Slot> slots() const;

  constexpr std::size_t gene_count() const { return kStages + 2 * blocks_; }
  bool is_active(Design design, std::size_t gene) const;
  SlotSet active_slots(Design design) const;
  DesignCount size() const;

  /// The blocks of a stage that are there.
  std::vector<graph::SearchedLayer> layers(Design design, std::size_t stage) const;
  graph::SearchedLayer layer(Design design, std::size_t block) const;

 private:
  static std::size_t depth(Design design, std::size_t stage);

  std::size_t blocks_;
};

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

// --- MobileNetV2

// Before the width multiplier.
constexpr double kMobileNetWidth = 1.3;
constexpr std::int64_t kStem = 32;
constexpr std::int64_t kFirstBlock = 16;
constexpr std::int64_t kLastBlock = 320;
constexpr std::int64_t kHead = 1280;
constexpr std::array<std::int64_t, ElasticStages::kStages> kChannels = {24, 40, 80, 96, 192};
constexpr std::array<std::int64_t, ElasticStages::kStages> kStrides = {2, 2, 2, 1, 2};

constexpr ElasticStages kMobileNetStages(1);
constexpr std::size_t kLastBlockNumber = ElasticStages::kStages * ElasticStages::kMostDepth;

class MobileNetV2 final : public Space {
 public:
  MobileNetV2()
      : Space({.name = "mobilenetv2",
               .line = "MobileNetV2 of width 1.3 with elastic depth, kernels and expansions (One "
                       "Proxy), ImageNet",
               .columns = {"ks", "e", "d"}},
              kMobileNetStages.genes(), kMobileNetStages.slots()) {}

  bool is_active(Design design, std::size_t gene) const override {
    return kMobileNetStages.is_active(design, gene);
  }
  SlotSet active_slots(Design design) const override {
    return kMobileNetStages.active_slots(design);
  }
  DesignCount size() const override { return kMobileNetStages.size(); }

 protected:
  Result<graph::Graph> build(Design design) const override {
    const graph::NetOptions options{.classes = kClasses, .width = kMobileNetWidth};
    std::vector<graph::SearchedStage> stages = {{kFirstBlock, 1, {{3, 1}}}};
    for (std::size_t i = 0; i < kChannels.size(); ++i)
      stages.push_back({kChannels[i], kStrides[i], kMobileNetStages.layers(design, i)});
    stages.push_back({kLastBlock, 1, {kMobileNetStages.layer(design, kLastBlockNumber)}});
    return network_on_image(name(), kImage, [&](graph::NetBuilder& net, graph::TensorId x) {
      x = net.conv_bn(x, {.out = options.scaled(kStem), .kernel = 3, .stride = 2}, graph::kRelu6);
      x = graph::searched_stages(net, x, options, stages, {});
      x = net.conv_bn(x, {.out = options.scaled(kHead)}, graph::kRelu6);
      return graph::classify(net, x, kClasses);
    });
  }
};

// --- Once-for-All's MobileNetV3

constexpr double kOfaWidth = 1.2;

constexpr std::int64_t kSmallestImage = 128;
constexpr std::int64_t kImageStep = 4;
constexpr std::size_t kImages = 25;
constexpr std::size_t kImageColumn = 3;

constexpr ElasticStages kOfaStages(0);
constexpr std::size_t kImageGene = kOfaStages.gene_count();
constexpr std::size_t kImageSlot = ElasticStages::kStages * ElasticStages::kMostDepth;

std::int64_t image_of(Choice choice) { return kSmallestImage + kImageStep * choice; }

Gene image_gene() {
  std::vector<std::int64_t> images;
  for (Choice choice = 0; choice < kImages; ++choice) images.push_back(image_of(choice));
  Gene gene = amounts("image", "", images, "-r");
  gene.column = kImageColumn;
  return gene;
}

std::vector<Gene> all_genes() {
  auto genes = kOfaStages.genes();
  genes.push_back(image_gene());
  return genes;
}

std::vector<Slot> all_slots() {
  auto slots = kOfaStages.slots();
  slots.push_back({.name = "image", .genes = {kImageGene}});
  return slots;
}

class OfaMbv3 final : public Space {
 public:
  OfaMbv3()
      : Space({.name = "ofa-mbv3",
               .line = "subnets of Once-for-All's MobileNetV3 of width 1.2 (Cai and others), "
                       "ImageNet",
               .columns = {"ks", "e", "d", "r"}},
              all_genes(), all_slots()) {}

  bool is_active(Design design, std::size_t gene) const override {
    return kOfaStages.is_active(design, gene);
  }
  SlotSet active_slots(Design design) const override {
    return kOfaStages.active_slots(design).set(kImageSlot);
  }
  DesignCount size() const override { return kOfaStages.size() * DesignCount(kImages); }

 protected:
  Result<graph::Graph> build(Design design) const override {
    graph::OnceForAllSubnet subnet{.width = kOfaWidth};
    for (std::size_t stage = 0; stage < subnet.stages.size(); ++stage)
      subnet.stages[stage] = kOfaStages.layers(design, stage);
    const std::int64_t size = image_of(design[kImageGene]);
    return network_on_image(name(), size, [&](graph::NetBuilder& net, graph::TensorId image) {
      return graph::once_for_all_mobilenet_v3(net, image, subnet, kClasses);
    });
  }
};

}  // namespace

std::unique_ptr<const Space> make_mobilenetv2() { return std::make_unique<MobileNetV2>(); }

std::unique_ptr<const Space> make_ofa_mbv3() { return std::make_unique<OfaMbv3>(); }

}  // namespace fleetfit::space
