#include <vector>

#include "fleetfit/graph/once_for_all.h"
#include "space/all_spaces.h"
#include "space/elastic_stages.h"
#include "space/genes.h"
#include "space/imagenet.h"

namespace fleetfit::space {
namespace {

constexpr double kWidth = 1.2;

constexpr std::int64_t kSmallestImage = 128;
constexpr std::int64_t kImageStep = 4;
constexpr std::size_t kImages = 25;
constexpr std::size_t kImageColumn = 3;

constexpr ElasticStages kStages(0);
constexpr std::size_t kImageGene = kStages.gene_count();
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
  auto genes = kStages.genes();
  genes.push_back(image_gene());
  return genes;
}

std::vector<Slot> all_slots() {
  auto slots = kStages.slots();
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
    return kStages.is_active(design, gene);
  }
  SlotSet active_slots(Design design) const override {
    return kStages.active_slots(design).set(kImageSlot);
  }
  DesignCount size() const override { return kStages.size() * DesignCount(kImages); }

 protected:
  Result<graph::Graph> build(Design design) const override {
    graph::OnceForAllSubnet subnet{.width = kWidth};
    for (std::size_t stage = 0; stage < subnet.stages.size(); ++stage)
      subnet.stages[stage] = kStages.layers(design, stage);
    graph::NetBuilder net(name(), kWeightSeed);
    const std::int64_t size = image_of(design[kImageGene]);
    const auto image = net.input("input", {1, kImageChannels, size, size});
    net.output(graph::once_for_all_mobilenet_v3(net, image, subnet, kClasses), "output");
    return std::move(net).finish();
  }
};

}  // namespace

std::unique_ptr<const Space> make_ofa_mbv3() { return std::make_unique<OfaMbv3>(); }

}  // namespace fleetfit::space
