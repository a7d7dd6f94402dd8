#include <fmt/format.h>

#include <array>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "space/all_spaces.h"

namespace fleetfit::space {
namespace {

using graph::NetBuilder;
using graph::TensorId;

constexpr std::int64_t kStem = 16;
constexpr std::int64_t kHead = 1984;

struct Stage {
  std::int64_t out;
  std::int64_t stride;
  std::size_t blocks;
};
constexpr std::array<Stage, 7> kStages = {
    {{16, 1, 1}, {24, 2, 4}, {32, 2, 4}, {64, 2, 4}, {112, 1, 4}, {184, 2, 4}, {352, 1, 1}}};
constexpr std::size_t kBlocks = 22;

struct Candidate {
  const char* name;
  graph::SearchedLayer layer;
};
constexpr std::array<Candidate, 8> kCandidates = {{{"k3_e1", {3, 1, 1}},
                                                   {"k3_e1_g2", {3, 1, 2}},
                                                   {"k3_e3", {3, 3, 1}},
                                                   {"k3_e6", {3, 6, 1}},
                                                   {"k5_e1", {5, 1, 1}},
                                                   {"k5_e1_g2", {5, 1, 2}},
                                                   {"k5_e3", {5, 3, 1}},
                                                   {"k5_e6", {5, 6, 1}}}};
/// Stands behind the candidates.
constexpr Choice kSkip = kCandidates.size();

std::string block_name(std::size_t block) { return fmt::format("block {}", block + 1); }

std::vector<Gene> block_genes() {
  std::vector<Gene> genes;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    Gene gene{.name = block_name(block)};
    for (Choice choice = 0; choice <= kSkip; ++choice)
      gene.choices.push_back(std::to_string(choice));
    genes.push_back(std::move(gene));
  }
  return genes;
}

std::vector<Slot> block_slots() {
  std::vector<std::string> kinds;
  for (const Candidate& candidate : kCandidates) kinds.emplace_back(candidate.name);
  kinds.emplace_back("skip");
  std::vector<Slot> slots;
  for (std::size_t block = 0; block < kBlocks; ++block)
    slots.push_back({.name = block_name(block), .genes = {block}, .kinds = kinds});
  return slots;
}

/// Where size or channels change, something has to change them: a 1x1 convolution.
TensorId skip(NetBuilder& net, TensorId x, const Stage& stage) {
  if (stage.stride == 1 && net.channels(x) == stage.out) return x;
  return net.conv_bn(x, {.out = stage.out, .stride = stage.stride}, graph::kRelu);
}

TensorId build_block(NetBuilder& net, TensorId x, Choice choice, const Stage& stage) {
  if (choice == kSkip) return skip(net, x, stage);
  return graph::searched_stages(net, x, {},
                                {{stage.out, stage.stride, {kCandidates[choice].layer}}},
                                {.activation = graph::kRelu, .expand_unwidened = true});
}

class FbNet final : public Space {
 public:
  FbNet()
      : Space({.name = "fbnet",
               .line = "22 blocks of nine kinds each (Wu and others), ImageNet",
               .columns = {"ops"}},
              block_genes(), block_slots()) {}

 protected:
  Result<graph::Graph> build(Design design) const override {
    return network_on_image(name(), kImage, [&](NetBuilder& net, TensorId x) {
      x = net.conv_bn(x, {.out = kStem, .kernel = 3, .stride = 2}, graph::kRelu);
      std::size_t block = 0;
      for (Stage stage : kStages) {
        for (std::size_t i = 0; i < stage.blocks; ++i) {
          x = build_block(net, x, design[block++], stage);
          stage.stride = 1;
        }
      }
      x = net.conv_bn(x, {.out = kHead}, graph::kRelu);
      return graph::classify(net, x, kClasses);
    });
  }
};

}  // namespace

std::unique_ptr<const Space> make_fbnet() { return std::make_unique<FbNet>(); }

}  // namespace fleetfit::space
