#include <array>

#include "fleetfit/graph/blocks.h"
#include "space/all_spaces.h"
#include "space/elastic_stages.h"
#include "space/imagenet.h"

namespace fleetfit::space {
namespace {

// Before the width multiplier.
constexpr double kWidth = 1.3;
constexpr std::int64_t kStem = 32;
constexpr std::int64_t kFirstBlock = 16;
constexpr std::int64_t kLastBlock = 320;
constexpr std::int64_t kHead = 1280;
constexpr std::array<std::int64_t, ElasticStages::kStages> kChannels = {24, 40, 80, 96, 192};
constexpr std::array<std::int64_t, ElasticStages::kStages> kStrides = {2, 2, 2, 1, 2};

constexpr ElasticStages kStages(1);
constexpr std::size_t kLastBlockNumber = ElasticStages::kStages * ElasticStages::kMostDepth;

class MobileNetV2 final : public Space {
 public:
  MobileNetV2()
      : Space({.name = "mobilenetv2",
               .line = "MobileNetV2 of width 1.3 with elastic depth, kernels and expansions (One "
                       "Proxy), ImageNet",
               .columns = {"ks", "e", "d"}},
              kStages.genes(), kStages.slots()) {}

  bool is_active(Design design, std::size_t gene) const override {
    return kStages.is_active(design, gene);
  }
  SlotSet active_slots(Design design) const override { return kStages.active_slots(design); }
  DesignCount size() const override { return kStages.size(); }

 protected:
  Result<graph::Graph> build(Design design) const override {
    const graph::NetOptions options{.classes = kClasses, .width = kWidth};
    std::vector<graph::SearchedStage> stages = {{kFirstBlock, 1, {{3, 1}}}};
    for (std::size_t i = 0; i < kChannels.size(); ++i)
      stages.push_back({kChannels[i], kStrides[i], kStages.layers(design, i)});
    stages.push_back({kLastBlock, 1, {kStages.layer(design, kLastBlockNumber)}});
    graph::NetBuilder net(name(), kWeightSeed);
    auto x = net.input("input", {1, kImageChannels, kImage, kImage});
    x = net.conv_bn(x, {.out = options.scaled(kStem), .kernel = 3, .stride = 2}, graph::kRelu6);
    x = graph::searched_stages(net, x, options, stages, {});
    x = net.conv_bn(x, {.out = options.scaled(kHead)}, graph::kRelu6);
    net.output(graph::classify(net, x, kClasses), "output");
    return std::move(net).finish();
  }
};

}  // namespace

std::unique_ptr<const Space> make_mobilenetv2() { return std::make_unique<MobileNetV2>(); }

}  // namespace fleetfit::space
