#include "fleetfit/train/elastify.h"

#include <gtest/gtest.h>

#include <fstream>

#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "tests/train/surroundings.h"
#include "tests/train/tiny_supernet.h"

namespace fleetfit::train {
namespace {

/// Asks to stop once a stage has learned from so many images.
class StopsAfter final : public core::Progress {
 public:
  StopsAfter(std::string stage, std::uint64_t images) : stage_(std::move(stage)), images_(images) {}
  void receive(const core::ProgressEvent& event) override {
    if (event.name == stage_ && event.done >= images_) stop_.request_stop();
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::string stage_;
  std::uint64_t images_;
  std::stop_source stop_;
};

class Elastify : public testing::Test {
 protected:
  ImageSplits images() const {
    return {.train = training_, .validation = validation_, .test = test_};
  }

  Elastified learn(const ElastifyOptions& options, int threads = 1) {
    Surroundings surroundings(threads);
    return elastify(supernet_, images(), options, surroundings.context()).value();
  }

  Elastified learn_until(std::string stage, std::uint64_t images_done,
                         const ElastifyOptions& options) {
    core::ThreadPool pool(1);
    const core::SystemClock clock;
    StopsAfter progress(std::move(stage), images_done);
    return elastify(supernet_, images(), options,
                    {.pool = pool, .clock = clock, .progress = progress, .stop = progress.token()})
        .value();
  }

  Error refusal(const ImageSplits& images, const ElastifyOptions& options) {
    Surroundings surroundings;
    return elastify(supernet_, images, options, surroundings.context()).error();
  }

  const elastic::Supernet supernet_ = tiny_supernet();
  const TinyImages training_{supernet_, 256, 1};
  const TinyImages validation_{supernet_, 32, 2};
  const TinyImages test_{supernet_, 128, 3};
  const core::ScratchFolder folder_ = core::ScratchFolder::create().value();
  const ElastifyOptions quick_{.distill_epochs = 1,
                               .tune_epochs = 1,
                               .batch = 32,
                               .distill_rate = 0.02,
                               .tune_rate = 0.02,
                               .checkpoint = folder_.path() / "work",
                               .subject = "tiny"};
};

void expect_same(const elastic::Supernet& a, const elastic::Supernet& b) {
  ASSERT_EQ(a.blocks.size(), b.blocks.size());
  for (std::size_t i = 0; i < a.blocks.size(); ++i) {
    for (std::size_t k = 0; k < a.blocks[i].branches.size(); ++k)
      EXPECT_EQ(
          graph::first_difference(a.blocks[i].branches[k].graph, b.blocks[i].branches[k].graph),
          std::nullopt)
          << "block " << i << ", branch " << k;
  }
}

/// Mean over the subnets that are not the original.
double mean_accuracy(const Elastified& result) {
  double sum = 0;
  double count = 0;
  for (const auto& sample : result.samples) {
    if (sample.mac_share > 0.999) continue;
    sum += sample.accuracy;
    ++count;
  }
  return sum / count;
}

TEST_F(Elastify, LeavesTheOriginalAsItWas) {
  const auto learned = learn(quick_);
  EXPECT_EQ(learned.original_accuracy, 1);
  for (std::size_t b = 0; b < supernet_.blocks.size(); ++b) {
    const auto& before = supernet_.blocks[b].branches;
    const auto& after = learned.supernet.blocks[b].branches;
    EXPECT_EQ(graph::first_difference(before[0].graph, after[0].graph), std::nullopt);
    for (std::size_t i = 1; i < before.size(); ++i)
      EXPECT_NE(graph::first_difference(before[i].graph, after[i].graph), std::nullopt);
  }
}

TEST_F(Elastify, BranchesComeCloserToWhatTheyReplace) {
  auto options = quick_;
  options.distill_epochs = 6;
  options.tune_epochs = 0;
  const auto learned = learn(options);
  ASSERT_EQ(learned.epochs.size(), 6U);
  EXPECT_LT(learned.epochs.back().loss, 0.7 * learned.epochs.front().loss);
}

TEST_F(Elastify, SubnetsGetBetterByEachStage) {
  auto options = quick_;
  const auto accuracy = [&](int distill, int tune) {
    options.distill_epochs = distill;
    options.tune_epochs = tune;
    return mean_accuracy(learn(options));
  };
  const double untrained = accuracy(0, 0);
  const double distilled = accuracy(5, 0);
  const double tuned = accuracy(0, 5);
  const double both = accuracy(5, 5);
  EXPECT_GT(distilled, untrained + 0.05);
  EXPECT_GT(tuned, untrained + 0.05);
  EXPECT_GT(both, std::max(distilled, tuned) - 0.02);
}

TEST_F(Elastify, PapersRecipeLearnsToo) {
  auto options = quick_;
  options.recipe = ElastifyRecipe::paper;
  options.distill_epochs = 6;
  const auto learned = learn(options);
  EXPECT_LT(learned.epochs[5].loss, learned.epochs[0].loss);
  EXPECT_EQ(learned.epochs.back().stage, "tune");
}

TEST_F(Elastify, GivesTheSameOnAnyNumberOfThreads) {
  expect_same(learn(quick_, 1).supernet, learn(quick_, 2).supernet);
}

TEST_F(Elastify, GivesTheSameWhenItWasInterruptedAndResumed) {
  const auto whole = learn(quick_);
  auto options = quick_;
  options.resume = true;
  std::filesystem::remove(*options.checkpoint);
  EXPECT_TRUE(learn_until("distill", 96, options).is_interrupted);
  EXPECT_TRUE(learn_until("tune", 128, options).is_interrupted);
  const auto resumed = learn(options);
  EXPECT_FALSE(resumed.is_interrupted);
  expect_same(whole.supernet, resumed.supernet);
  ASSERT_EQ(resumed.epochs.size(), whole.epochs.size());
  EXPECT_EQ(resumed.epochs[0].loss, whole.epochs[0].loss);
}

TEST_F(Elastify, SamplesSubnetsOfAllSizes) {
  const auto learned = learn(quick_);
  EXPECT_EQ(learned.sample_images, 128);
  ASSERT_GE(learned.samples.size(), 50U);
  EXPECT_EQ(learned.samples.back().subnet, "o-o-o");
  EXPECT_EQ(learned.samples.back().accuracy, 1);
  EXPECT_LT(learned.by_share.front().low, 0.5);
  EXPECT_EQ(learned.by_share.back().high, 1);
}

TEST_F(Elastify, MeansOfRangesAreThoseOfTheirSamples) {
  const auto ranges = accuracy_by_share({{.accuracy = 0.5, .mac_share = 0.31},
                                         {.accuracy = 0.7, .mac_share = 0.39},
                                         {.accuracy = 0.9, .mac_share = 1.0}});
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_NEAR(ranges[0].mean, 0.6, 1e-12);
  EXPECT_EQ(ranges[0].subnets, 2U);
  EXPECT_EQ(ranges[1].mean, 0.9);
}

TEST_F(Elastify, NamesDataThatDoesNotFit) {
  const TinyImages five(supernet_, 64, 1, 5);
  const auto classes = refusal({.train = five, .validation = five, .test = five}, quick_);
  EXPECT_EQ(classes.code, ErrorCode::invalid_input);
  EXPECT_NE(classes.message.find("3 classes"), std::string::npos) << classes.message;
  EXPECT_NE(classes.message.find("5"), std::string::npos) << classes.message;

  auto few = quick_;
  few.limit = 20;
  const auto samples = refusal(images(), few);
  EXPECT_EQ(samples.code, ErrorCode::invalid_input);
  EXPECT_NE(samples.message.find("20 images"), std::string::npos) << samples.message;
}

TEST_F(Elastify, RefusesACheckpointOfOtherWorkAndADamagedOne) {
  EXPECT_TRUE(learn_until("distill", 96, quick_).is_interrupted);
  auto other = quick_;
  other.resume = true;
  other.seed = 2;
  EXPECT_NE(refusal(images(), other).message.find("other work"), std::string::npos);

  other.seed = 1;
  {
    std::fstream file(*quick_.checkpoint, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('x');
  }
  EXPECT_NE(refusal(images(), other).message.find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace fleetfit::train
