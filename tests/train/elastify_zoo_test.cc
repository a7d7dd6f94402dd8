#include <gtest/gtest.h>

#include "fleetfit/elastic/expand.h"
#include "fleetfit/graph/zoo.h"
#include "fleetfit/train/elastify.h"
#include "tests/train/surroundings.h"

namespace fleetfit::train {
namespace {

constexpr std::int64_t kClasses = 4;

/// Noise with labels in turn.
class Noise final : public data::Dataset {
 public:
  Noise(std::int64_t size, std::size_t count) : size_(size), count_(count) {}

  std::size_t size() const override { return count_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<data::Item> item(std::size_t index) const override {
    data::Image image{.height = size_, .width = size_, .channels = 3};
    core::Random random(index);
    for (std::int64_t i = 0; i < 3 * size_ * size_; ++i)
      image.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
    return data::Item{.image = std::move(image),
                      .label = static_cast<std::int64_t>(index) % kClasses};
  }

 private:
  std::int64_t size_;
  std::size_t count_;
  std::vector<std::string> classes_{"a", "b", "c", "d"};
};

struct Case {
  const char* name;
  std::int64_t image;
  double width = 1;
};

class ElastifyZoo : public testing::TestWithParam<Case> {};

TEST_P(ElastifyZoo, EveryBranchLearnsAndTheOriginalStays) {
  const auto& [name, image, width] = GetParam();
  const auto model = graph::build_zoo_network(
      name, {.width = width, .classes = kClasses, .image = image, .channels = 3});
  ASSERT_TRUE(model) << model.error().message;
  const auto supernet = elastic::expand(*model);
  ASSERT_TRUE(supernet) << supernet.error().message;
  const Noise images(image, 8);
  Surroundings surroundings(2);
  const auto learned =
      elastify(*supernet, {.train = images, .validation = images, .test = images},
               {.distill_epochs = 1, .tune_epochs = 1, .batch = 4}, surroundings.context());
  ASSERT_TRUE(learned) << learned.error().message;
  for (std::size_t b = 0; b < supernet->blocks.size(); ++b) {
    const auto& before = supernet->blocks[b].branches;
    const auto& after = learned->supernet.blocks[b].branches;
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(graph::first_difference(before[i].graph, after[i].graph) == std::nullopt, i == 0)
          << "block " << b << ", branch " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ElastifyZoo,
                         testing::Values(Case{"resnet8", 16}, Case{"mobilenet_v2_small", 16, 0.25},
                                         Case{"densenet40_k12", 8}, Case{"deit_tiny", 32}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace fleetfit::train
