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

constexpr std::int64_t kStem = 16;
constexpr std::int64_t kHead = 960;
constexpr std::int64_t kHidden = 1280;
constexpr float kEpsilon = 1e-3F;

enum class Se : std::uint8_t { no, yes };
enum class Act : std::uint8_t { relu, hard_swish };

struct Bottleneck {
  std::int64_t expanded;
  std::int64_t out;
  std::int64_t stride;
  Se se;
  Act act;
};

/// MobileNetV3-Large without the last block of 40, of 80 and of 160 channels, which repeat the one
/// before them.
constexpr std::array<Bottleneck, 12> kBlocks = {{
    {16, 16, 1, Se::no, Act::relu},
    {64, 24, 2, Se::no, Act::relu},
    {72, 24, 1, Se::no, Act::relu},
    {72, 40, 2, Se::yes, Act::relu},
    {120, 40, 1, Se::yes, Act::relu},
    {240, 80, 2, Se::no, Act::hard_swish},
    {200, 80, 1, Se::no, Act::hard_swish},
    {184, 80, 1, Se::no, Act::hard_swish},
    {480, 112, 1, Se::yes, Act::hard_swish},
    {672, 112, 1, Se::yes, Act::hard_swish},
    {672, 160, 2, Se::yes, Act::hard_swish},
    {960, 160, 1, Se::yes, Act::hard_swish},
}};

BlockChain chain() {
  std::vector<BlockChain::Block> blocks;
  for (const Bottleneck& block : kBlocks) {
    blocks.push_back({.kernels = {1, 3, 5, 7, 9},
                      .middles = channels_around(block.expanded),
                      .outputs = channels_around(block.out)});
  }
  return {channels_around(kStem), std::move(blocks), {.name = "middle", .prefix = "m"}};
}

class MobileNetV3 final : public Space {
 public:
  MobileNetV3() : MobileNetV3(chain()) {}

 protected:
  Result<graph::Graph> build(Design design) const override {
    NetBuilder net(name(), kWeightSeed);
    TensorId x = net.input("input", {1, kImageChannels, kImage, kImage});
    x = net.conv_bn(x, {.out = chain_.first_input(design), .kernel = 3, .stride = 2},
                    graph::kHardSwish, kEpsilon);
    for (std::size_t block = 0; block < chain_.size(); ++block)
      x = build_block(net, x, design, block);
    x = net.conv_bn(x, {.out = kHead}, graph::kHardSwish, kEpsilon);
    x = net.activate(graph::classify(net, x, kHidden), graph::kHardSwish);
    net.output(net.linear(x, kClasses), "output");
    return std::move(net).finish();
  }

 private:
  explicit MobileNetV3(BlockChain chain)
      : Space({.name = "mobilenetv3",
               .line = "MobileNetV3 with channels and kernels of its own in each of 12 blocks "
                       "(nn-Meter), ImageNet"},
              chain.genes(), chain.slots()),
        chain_(std::move(chain)) {}

  TensorId build_block(NetBuilder& net, TensorId x, Design design, std::size_t number) const {
    const Bottleneck& block = kBlocks[number];
    const std::int64_t expanded = chain_.middle(design, number);
    const std::int64_t reduced = block.se == Se::yes ? graph::scaled_channels(expanded / 4, 1) : 0;
    return graph::inverted_residual(
        net, x,
        {.kernel = chain_.kernel(design, number),
         .stride = block.stride,
         .expanded = expanded,
         .out = chain_.output(design, number),
         .se = {.reduced = reduced, .gate = graph::kHardSigmoid},
         .activation = block.act == Act::relu ? graph::kRelu : graph::kHardSwish,
         .epsilon = kEpsilon});
  }

  BlockChain chain_;
};

}  // namespace

std::unique_ptr<const Space> make_mobilenetv3() { return std::make_unique<MobileNetV3>(); }

}  // namespace fleetfit::space
