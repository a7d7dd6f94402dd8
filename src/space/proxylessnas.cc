#include <array>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "space/all_spaces.h"
#include "space/block_chain.h"
#include "space/genes.h"
#include "space/imagenet.h"

namespace fleetfit::space {
namespace {

using graph::NetBuilder;
using graph::TensorId;

constexpr std::int64_t kStem = 32;
constexpr std::int64_t kFirstBlock = 16;
constexpr std::int64_t kHead = 1280;
constexpr float kEpsilon = 1e-3F;

struct Stage {
  std::int64_t out;
  std::int64_t stride;
  std::size_t blocks;
};
constexpr std::array<Stage, 6> kStages = {
    {{24, 2, 4}, {40, 2, 4}, {80, 2, 4}, {96, 1, 4}, {192, 2, 4}, {320, 1, 1}}};

BlockChain chain() {
  std::vector<BlockChain::Block> blocks;
  for (const Stage& stage : kStages) {
    blocks.insert(blocks.end(), stage.blocks,
                  {.kernels = {3, 5, 7}, .middles = {3, 6}, .outputs = channels_around(stage.out)});
  }
  return {channels_around(kFirstBlock), std::move(blocks), {.name = "expansion", .prefix = "e"}};
}

class ProxylessNas final : public Space {
 public:
  ProxylessNas() : ProxylessNas(chain()) {}

 protected:
  Result<graph::Graph> build(Design design) const override {
    NetBuilder net(name(), kWeightSeed);
    TensorId x = net.input("input", {1, kImageChannels, kImage, kImage});
    x = net.conv_bn(x, {.out = kStem, .kernel = 3, .stride = 2}, graph::kRelu6, kEpsilon);
    x = graph::inverted_residual(net, x, {.out = chain_.first_input(design), .epsilon = kEpsilon});
    std::size_t block = 0;
    for (const Stage& stage : kStages) {
      for (std::size_t i = 0; i < stage.blocks; ++i)
        x = build_block(net, x, design, {.number = block++, .stride = i == 0 ? stage.stride : 1});
    }
    x = net.conv_bn(x, {.out = kHead}, graph::kRelu6, kEpsilon);
    net.output(graph::classify(net, x, kClasses), "output");
    return std::move(net).finish();
  }

 private:
  struct Place {
    std::size_t number;
    std::int64_t stride;
  };

  explicit ProxylessNas(BlockChain chain)
      : Space({.name = "proxylessnas",
               .line = "ProxylessNAS's 21 blocks with kernels, expansions and channels of their "
                       "own (nn-Meter), ImageNet"},
              chain.genes(), chain.slots()),
        chain_(std::move(chain)) {}

  TensorId build_block(NetBuilder& net, TensorId x, Design design, const Place& place) const {
    return graph::inverted_residual(
        net, x,
        {.kernel = chain_.kernel(design, place.number),
         .stride = place.stride,
         .expanded = chain_.middle(design, place.number) * net.channels(x),
         .out = chain_.output(design, place.number),
         .epsilon = kEpsilon});
  }

  BlockChain chain_;
};

}  // namespace

std::unique_ptr<const Space> make_proxylessnas() { return std::make_unique<ProxylessNas>(); }

}  // namespace fleetfit::space
