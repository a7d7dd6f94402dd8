#include "fleetfit/train/segmentation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "fleetfit/data/scenes.h"
#include "fleetfit/elastic/expand.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/train/elastify.h"
#include "tests/train/memory_dataset.h"
#include "tests/train/surroundings.h"
#include "train/quality.h"

namespace fleetfit::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kScene = 16;

/// Three residual blocks at half the image's size, and a classifier for two classes.
graph::Graph classifier(std::int64_t size) {
  graph::NetBuilder net("classifier", 1);
  auto x = net.input("image", {1, 1, size, size});
  x = net.conv_bn(x, {.out = 8, .kernel = 3, .stride = 2}, graph::kRelu);
  for (int i = 0; i < 3; ++i) {
    auto y = net.conv_bn(x, {.out = 8, .kernel = 3}, graph::kRelu);
    y = net.conv_bn(y, {.out = 8, .kernel = 3});
    x = net.activate(net.add(x, y), graph::kRelu);
  }
  net.output(net.linear(net.flatten(net.global_average_pool(x)), 2), "classes");
  return std::move(net).finish().value();
}

SegmentationOptions three_classes() { return {.classes = 3, .height = kScene, .width = kScene}; }

TEST(SegmentationHead, StandsBehindTheLastFeatureMap) {
  const auto whole = classifier(8);
  const auto network = with_segmentation_head(whole, three_classes()).value();
  EXPECT_FALSE(is_segmentation(whole));
  EXPECT_TRUE(is_segmentation(network));
  EXPECT_EQ(network.tensor(network.inputs[0]).shape, (graph::Shape{1, 1, kScene, kScene}));
  EXPECT_EQ(network.tensor(network.outputs[0]).shape, (graph::Shape{1, 3, kScene, kScene}));
  EXPECT_EQ(network.tensor(network.outputs[0]).name, "classes");
  EXPECT_TRUE(std::holds_alternative<graph::Resize>(network.nodes.back().op));
  const auto is_dense = [](const graph::Node& node) {
    return std::holds_alternative<graph::Gemm>(node.op) ||
           std::holds_alternative<graph::MatMul>(node.op);
  };
  EXPECT_TRUE(std::ranges::none_of(network.nodes, is_dense)) << "the classifier is gone";
  EXPECT_EQ(network.nodes[0].name, whole.nodes[0].name);
  EXPECT_THAT(network.nodes.back().name, HasSubstr("head/"));
}

TEST(SegmentationHead, NeedsAMapThatFits) {
  EXPECT_THAT(with_segmentation_head(classifier(8), {.classes = 3, .height = 15, .width = 15})
                  .error()
                  .message,
              HasSubstr("stretched evenly"));
  graph::NetBuilder net("dense", 1);
  const auto x = net.input("x", {1, 4});
  net.output(net.linear(x, 2), "y");
  const auto dense = std::move(net).finish().value();
  EXPECT_FALSE(with_segmentation_head(dense, three_classes()));
}

TEST(ClassCounts, GiveAccuracyAndMeanIntersectionOverUnion) {
  ClassCounts counts{.found = {6, 2, 0, 0}, .wanted = {5, 2, 1, 0}, .both = {5, 1, 0, 0}};
  EXPECT_DOUBLE_EQ(counts.accuracy(), 6.0 / 8);
  // 5 of 6, 1 of 3, 0 of 1; the last class does not occur.
  EXPECT_DOUBLE_EQ(counts.mean_iou(), (5.0 / 6 + 1.0 / 3) / 3);
  counts.add(counts);
  EXPECT_DOUBLE_EQ(counts.accuracy(), 6.0 / 8);
  EXPECT_THAT(counts.found, ElementsAre(12, 4, 0, 0));
}

/// Small images, bright (0) or of medium brightness (1), in the middle of black.
MemoryDataset shapes(std::size_t count, std::uint64_t seed) {
  core::Random random(seed);
  std::vector<data::Item> items;
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::int64_t>(random.below(2));
    data::Image image{.height = 8, .width = 8, .channels = 1, .pixels = {}};
    for (std::int64_t p = 0; p < 64; ++p) {
      const bool inside = p / 8 > 0 && p / 8 < 7 && p % 8 > 0 && p % 8 < 7;
      image.pixels.push_back(
          static_cast<std::uint8_t>(inside ? (label == 0 ? 220U : 120U) + random.below(30) : 0U));
    }
    items.push_back({.image = std::move(image), .label = label});
  }
  return {std::move(items), {"bright", "medium"}};
}

std::unique_ptr<data::Dataset> scenes(std::size_t count, std::uint64_t seed) {
  const auto images = std::make_shared<MemoryDataset>(shapes(40, seed));
  return data::as_dataset(
      data::Scenes::create(
          images,
          {.size = kScene, .max_objects = 2, .min_scale = 0.8, .max_scale = 1, .count = count})
          .value());
}

class TwoStages : public testing::Test {
 protected:
  ImageSplits task() const { return {.train = *train_, .validation = *few_, .test = *test_}; }

  TrainedClassifier train(const graph::Graph& network) {
    return train_classifier(network, task(), {.epochs = 4, .batch = 16, .learning_rate = 0.05},
                            surroundings_.context())
        .value();
  }

  Surroundings surroundings_;
  const std::unique_ptr<data::Dataset> train_ = scenes(192, 1);
  const std::unique_ptr<data::Dataset> few_ = scenes(32, 2);
  const std::unique_ptr<data::Dataset> test_ = scenes(48, 3);
};

TEST_F(TwoStages, ANetworkLearnsTheClassOfEachPixel) {
  const auto network = with_segmentation_head(classifier(8), three_classes()).value();
  const auto trained = train(network);
  double background = 0;
  for (std::size_t i = 0; i < test_->size(); ++i)
    background += static_cast<double>(std::ranges::count(test_->item(i).value().mask, 0));
  background /= static_cast<double>(test_->size()) * kScene * kScene;
  EXPECT_GT(*trained.accuracy, background + 0.05) << "more than the background is found";
}

TEST_F(TwoStages, BranchesLearnFeaturesOnTheFirstDataAndTheTaskOnTheSecond) {
  const auto network = with_segmentation_head(classifier(8), three_classes()).value();
  const auto supernet = elastic::expand(train(network).graph).value();
  const auto first = shapes(96, 4);
  const ElastifyOptions options{.distill_epochs = 2,
                                .tune_epochs = 1,
                                .batch = 16,
                                .distill_rate = 0.01,
                                .first_data = &first};
  const auto result = elastify(supernet, task(), options, surroundings_.context()).value();
  ASSERT_TRUE(result.original_mean_iou);
  EXPECT_GT(*result.original_mean_iou, 0.3);
  EXPECT_LE(*result.original_mean_iou, result.original_accuracy);
  ASSERT_EQ(result.epochs.size(), 3U);
  for (const auto& range : result.by_share) EXPECT_TRUE(range.mean_iou);
  // Every subnet ends in classes of pixels, and is a network of its own.
  const std::vector<elastic::Supernet> models{result.supernet};
  const elastic::SubnetSpace space(models);
  for (const auto& sample : result.samples) {
    const auto subnet = space.lower(space.parse(sample.subnet).value()).value();
    EXPECT_TRUE(is_segmentation(subnet)) << sample.subnet;
  }
  for (std::size_t b = 0; b < supernet.blocks.size(); ++b)
    EXPECT_EQ(graph::first_difference(supernet.blocks[b].branches[0].graph,
                                      result.supernet.blocks[b].branches[0].graph),
              std::nullopt);
}

TEST_F(TwoStages, SayIfNetworkAndDataTellOtherThings) {
  const auto whole = classifier(kScene);
  const auto images = shapes(64, 1);
  const auto network = with_segmentation_head(classifier(8), three_classes()).value();
  const auto refusal = [&](const graph::Graph& graph, const ImageSplits& data) {
    return train_classifier(graph, data, {.epochs = 1}, surroundings_.context()).error().message;
  };
  const ImageSplits plain{.train = images, .validation = images, .test = images};
  EXPECT_THAT(refusal(network, plain), HasSubstr("classes"));
  EXPECT_THAT(refusal(whole, task()), HasSubstr("classes"));
}

}  // namespace
}  // namespace fleetfit::train
