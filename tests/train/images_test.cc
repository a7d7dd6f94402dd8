#include "fleetfit/train/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "fleetfit/graph/net_builder.h"
#include "tests/core/temporary_folder.h"
#include "tests/train/memory_dataset.h"
#include "tests/train/surroundings.h"

namespace fleetfit::train {
namespace {

using testing::HasSubstr;

// Noise with one bright quarter, which is the class.
MemoryDataset bright_quarters(std::size_t count, std::uint64_t seed) {
  std::vector<data::Item> items;
  core::Random random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::int64_t>(i % 4);
    auto image = noise(8, 8, 1, random.split(i));
    for (std::int64_t k = 0; k < 16; ++k) {
      const auto y = label / 2 * 4 + k / 4;
      const auto x = label % 2 * 4 + k % 4;
      auto& pixel = image.pixels[static_cast<std::size_t>(y * 8 + x)];
      pixel = static_cast<std::uint8_t>(128 + pixel / 2);
    }
    items.push_back({.image = std::move(image), .label = label});
  }
  return {std::move(items), {"north-west", "north-east", "south-west", "south-east"}};
}

graph::Graph small_network(std::int64_t classes = 4, bool softmax = false) {
  graph::NetBuilder net("small", 5);
  const auto x = net.input("input", {1, 1, 8, 8});
  auto y = net.conv_bn(x, {.out = 8, .kernel = 3, .stride = 2}, graph::kRelu);
  y = net.linear(net.flatten(y), classes);
  net.output(softmax ? net.softmax(y) : y, "output");
  return std::move(net).finish().value();
}

/// Calls back when so many images were learnt from.
class Counting final : public core::Progress {
 public:
  Counting(std::uint64_t images, std::function<void()> reached)
      : images_(images), reached_(std::move(reached)) {}
  void receive(const core::ProgressEvent& event) override {
    if (event.kind == core::ProgressKind::message) ++messages;
    if (event.kind == core::ProgressKind::advanced && event.done >= images_) reached_();
  }
  int messages = 0;

 private:
  std::uint64_t images_;
  std::function<void()> reached_;
};

class ClassifierTest : public testing::Test {
 protected:
  Result<TrainedClassifier> train(const graph::Graph& network, const ClassifierOptions& options) {
    return train_classifier(network, splits(), options, here_.context());
  }

  ImageSplits splits() const { return {.train = train_, .validation = validation_, .test = test_}; }

  ClassifierOptions quick() const {
    return {.epochs = 4, .flip = false, .checkpoint = folder_.path() / "m.onnx.training"};
  }

  core::TemporaryFolder folder_;
  MemoryDataset train_ = bright_quarters(256, 1);
  MemoryDataset validation_ = bright_quarters(64, 2);
  MemoryDataset test_ = bright_quarters(64, 3);
  Surroundings here_;
};

TEST_F(ClassifierTest, LearnsToTellClasses) {
  const auto trained = train(small_network(), quick());
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_GT(trained->accuracy.value(), 0.9);
  EXPECT_EQ(trained->epochs, 4);
  EXPECT_EQ(trained->images, 256);
  EXPECT_FALSE(trained->interrupted);
  EXPECT_EQ(trained->graph.nodes.size(), small_network().nodes.size());
}

TEST_F(ClassifierTest, LearnsWithProbabilitiesAsOutput) {
  EXPECT_GT(train(small_network(4, true), quick()).value().accuracy.value(), 0.9);
}

TEST_F(ClassifierTest, GivesTheSameNetworkForTheSameSeed) {
  const auto first = train(small_network(), quick()).value();
  EXPECT_EQ(graph::first_difference(train(small_network(), quick()).value().graph, first.graph),
            std::nullopt);
  auto other = quick();
  other.seed = 2;
  EXPECT_NE(graph::first_difference(train(small_network(), other).value().graph, first.graph),
            std::nullopt);
}

TEST_F(ClassifierTest, GoesOnWhereItWasStoppedAsIfNothingHadBeen) {
  const auto whole = train(small_network(), quick()).value();

  std::stop_source stop;
  Counting progress(416, [&] { stop.request_stop(); });  // in the middle of the second epoch
  core::ThreadPool pool(1);
  const core::SystemClock clock;
  const auto begun = train_classifier(
      small_network(), splits(), quick(),
      {.pool = pool, .clock = clock, .progress = progress, .stop = stop.get_token()});
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_TRUE(begun->interrupted);
  EXPECT_EQ(begun->epochs, 1);
  EXPECT_EQ(begun->accuracy, std::nullopt);
  EXPECT_EQ(progress.messages, 1);

  auto options = quick();
  options.resume = true;
  const auto resumed = train(small_network(), options);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->resumed_at, 1);
  EXPECT_EQ(resumed->epochs, 4);
  EXPECT_EQ(resumed->accuracy, whole.accuracy);
  EXPECT_EQ(graph::first_difference(resumed->graph, whole.graph), std::nullopt);
}

TEST_F(ClassifierTest, RefusesToGoOnWithAnotherTraining) {
  ASSERT_TRUE(train(small_network(), quick()));
  auto options = quick();
  options.resume = true;
  options.epochs = 5;
  const auto resumed = train(small_network(), options);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(resumed.error().message, HasSubstr("its epochs is 4, not 5"));
}

TEST_F(ClassifierTest, RefusesWhatDoesNotFitTheData) {
  const auto error = train(small_network(3), quick()).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_input);
  EXPECT_THAT(error.message, HasSubstr("'output' is 1x3, and the data has 4 classes"));
}

TEST_F(ClassifierTest, SaysThatTheLossBecameInfinite) {
  auto options = quick();
  options.learning_rate = 1e30;
  const auto error = train(small_network(), options).error();
  EXPECT_EQ(error.code, ErrorCode::unstable);
  EXPECT_THAT(error.message, HasSubstr("--learning-rate"));
}

}  // namespace
}  // namespace fleetfit::train
