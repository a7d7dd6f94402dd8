#include "fleetfit/adapt/evaluator.h"
#include "adapt/search/scores.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fleetfit/core/random.h"
#include "fleetfit/graph/evaluate.h"
#include "small_supernet.h"

namespace fleetfit::adapt {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBatch = 4;
constexpr std::size_t kImages = 10;  // the last batch has two

/// Random images with random labels.
class NoiseImages final : public ImageBatches {
 public:
  explicit NoiseImages(std::int64_t side = kSide) : side_(side) {}

  std::size_t images() const override { return kImages; }
  std::size_t batch_size() const override { return kBatch; }
  Result<data::Batch> batch(std::size_t index) const override {
    const std::size_t count = std::min(kBatch, kImages - index * kBatch);
    data::Batch batch{.shape = {static_cast<std::int64_t>(count), 1, side_, side_}};
    core::Random random = core::Random(7).split(index);
    for (std::size_t i = 0; i < count * static_cast<std::size_t>(side_ * side_); ++i)
      batch.values.push_back(static_cast<float>(random.uniform(-1, 1)));
    for (std::size_t i = 0; i < count; ++i)
      batch.labels.push_back(static_cast<std::int64_t>(random.below(kClasses)));
    return batch;
  }

 private:
  std::int64_t side_;
};

class Evaluating : public testing::Test {
 protected:
  Evaluating() {
    table_.ms = {{{1}, {2, 1, 1, 2}, {2, 1, 1, 2}, {2, 1, 1}, {1}}};
    for (const auto& design : all_designs(space_)) designs_.add(design);
  }

  std::unique_ptr<Evaluator> evaluator(const EvaluatorOptions& options) {
    return Evaluator::create({models_, space_, table_, images_}, options).value();
  }

  /// What the plain interpreter says of the scores of a subnet for a batch.
  std::vector<float> plain_scores(space::Design design, const data::Batch& batch) {
    const auto network = elastic::join(models_, space_.path(design)).value();
    auto values = batch.values;
    values.resize(kBatch * kSide * kSide);
    const std::vector<graph::Value> inputs = {
        {.shape = {kBatch, 1, kSide, kSide}, .data = graph::TensorData::copy(values)}};
    const auto outputs = graph::evaluate(network, inputs).value();
    const auto scores = outputs[0].data.as<float>();
    return {scores.begin(), scores.end()};
  }

  Evaluation plain_evaluation(space::Design design) {
    Evaluation sum;
    for (std::size_t b = 0; b < images_.batches(); ++b) {
      const auto batch = images_.batch(b).value();
      const auto scores = plain_scores(design, batch);
      sum.confidence +=
          sum_scores(scores, batch.labels, {.classes = kClasses}).confidence / kImages;
      for (std::size_t i = 0; i < batch.labels.size(); ++i) {
        const auto* of_image = &scores[i * kClasses];
        const auto best = std::max_element(of_image, of_image + kClasses) - of_image;
        const bool right = best == batch.labels[i];
        sum.accuracy += right ? 1.0 / kImages : 0;
      }
    }
    return sum;
  }

  std::vector<elastic::Supernet> models_ = {small_supernet(kBatch)};
  elastic::SubnetSpace space_{models_};
  LatencyTable table_;
  NoiseImages images_;
  space::Population designs_{3};
};

TEST_F(Evaluating, EqualsPlainEvaluationWhateverTheMemory) {
  std::vector<Evaluation> expected;
  for (std::size_t i = 0; i < designs_.size(); ++i)
    expected.push_back(plain_evaluation(std::as_const(designs_)[i]));
  // A feature of a batch has 4 x 4 x 5 x 5 floats, 1600 bytes.
  for (const std::size_t bytes : {0, 1600, 4000, 1 << 20}) {
    const auto work = evaluator({.reuse_bytes = bytes});
    const auto found = work->evaluate(designs_).value();
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].accuracy, expected[i].accuracy, 1e-9) << bytes;
      EXPECT_NEAR(found[i].confidence, expected[i].confidence, 1e-5) << bytes;
    }
    EXPECT_LE(work->reuse().peak_bytes, bytes);
  }
}

/// The same images, with a random class for each pixel.
class SegmentedNoise final : public ImageBatches {
 public:
  std::size_t images() const override { return kImages; }
  std::size_t batch_size() const override { return kBatch; }
  Result<data::Batch> batch(std::size_t index) const override {
    auto batch = NoiseImages().batch(index);
    core::Random random = core::Random(8).split(index);
    batch->labels.resize(batch->labels.size() * kSide * kSide);
    for (auto& label : batch->labels) label = static_cast<std::int64_t>(random.below(kClasses));
    return batch;
  }
};

graph::Graph pixel_head() {
  graph::NetBuilder net("head", 2);
  const auto x = net.input("x", {kBatch, 4, kSide, kSide});
  net.output(net.conv(x, {.out = kClasses, .bias = true}), "scores");
  return std::move(net).finish().value();
}

TEST_F(Evaluating, CountsPixelsWhereThoseHaveClasses) {
  EXPECT_THAT(Evaluator::create({models_, space_, table_, SegmentedNoise()}).error().message,
              HasSubstr("places"));
  models_[0].blocks.back().branches[0].graph = pixel_head();
  const SegmentedNoise images;
  const auto work = Evaluator::create({models_, space_, table_, images}).value();
  const auto found = work->evaluate(designs_).value();
  for (std::size_t i = 0; i < designs_.size(); ++i) {
    double right = 0;
    for (std::size_t b = 0; b < images.batches(); ++b) {
      const auto batch = images.batch(b).value();
      const auto scores = plain_scores(std::as_const(designs_)[i], batch);
      constexpr std::size_t kPixels = kSide * kSide;
      for (std::size_t p = 0; p < batch.labels.size(); ++p) {
        const auto* first = &scores[p / kPixels * kPixels * kClasses + p % kPixels];
        const auto wanted = static_cast<std::size_t>(batch.labels[p]);
        bool best = true;
        for (std::size_t c = 0; c < kClasses; ++c)
          best = best && first[wanted * kPixels] >= first[c * kPixels];
        right += best ? 1 : 0;
      }
    }
    EXPECT_NEAR(found[i].accuracy, right / (kImages * kSide * kSide), 1e-9);
  }
  const auto own =
      Evaluator::create({models_, space_, table_, images}, {.labels = Labels::original});
  space::Population original(3);
  original.add(space_.parse("o-o-o").value());
  EXPECT_EQ((*own)->evaluate(original).value()[0].accuracy, 1);
}

TEST_F(Evaluating, IsTheSameOnSeveralThreadsAndWithFewPrograms) {
  const auto alone = evaluator({})->evaluate(designs_).value();
  EXPECT_EQ(evaluator({.threads = 3})->evaluate(designs_).value(), alone);
  EXPECT_EQ(evaluator({.program_bytes = 1})->evaluate(designs_).value(), alone);
}

TEST_F(Evaluating, RunsEverythingForEachSubnetWithoutMemory) {
  const auto work = evaluator({.reuse_bytes = 0});
  space::Population two(3);
  two.add(space_.parse("o-o-o").value());
  two.add(space_.parse("o-o-s1").value());
  ASSERT_TRUE(work->evaluate(two));
  const auto reuse = work->reuse();
  EXPECT_EQ(reuse.runs, 2U * 5 * 3);
  EXPECT_EQ(reuse.runs_without, 2U * 5 * 3);
  EXPECT_NEAR(reuse.saved_fraction, 0, 1e-9);
  EXPECT_EQ(reuse.peak_bytes, 0U);
}

TEST_F(Evaluating, RunsWhatIsSharedOnce) {
  const auto work = evaluator({});
  space::Population two(3);
  two.add(space_.parse("o-o-o").value());
  two.add(space_.parse("o-o-s1").value());
  ASSERT_TRUE(work->evaluate(two));
  // Stem and two blocks once, then block and head for each: 7 instead of 10, for 3 batches.
  EXPECT_EQ(work->reuse().runs, 7U * 3);
  EXPECT_EQ(work->reuse().runs_without, 10U * 3);
  EXPECT_GT(work->reuse().peak_bytes, 0U);
}

TEST_F(Evaluating, RemembersSubnetsAndFeaturesFromCallToCall) {
  const auto work = evaluator({});
  space::Population two(3);
  two.add(space_.parse("o-o-o").value());
  two.add(space_.parse("o-o-s1").value());
  const auto first = work->evaluate(two).value();
  const std::size_t runs = work->reuse().runs;
  EXPECT_EQ(work->evaluate(two).value(), first);
  EXPECT_EQ(work->reuse().runs, runs);
  EXPECT_EQ(work->evaluated(), 2U);
  space::Population third(3);
  third.add(space_.parse("o-o-s2").value());
  ASSERT_TRUE(work->evaluate(third));
  EXPECT_EQ(work->reuse().runs, runs + 2U * 3) << "what three begin with is still there";
}

TEST_F(Evaluating, TakesTheOriginalsWordWhereThereAreNoLabels) {
  const auto work = evaluator({.labels = Labels::original});
  const auto original = work->evaluate({space_.original(), 3}).value();
  EXPECT_EQ(original[0].accuracy, 1);
  EXPECT_EQ(work->evaluated(), 1U);
}

TEST_F(Evaluating, RefusesImagesThatDoNotFit) {
  const NoiseImages larger(kSide + 1);
  const auto other = Evaluator::create({models_, space_, table_, larger});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(other.error().message, HasSubstr("4x1x5x5, the images are 4x1x6x6"));
}

TEST_F(Evaluating, StopsWhenAsked) {
  const auto work = evaluator({});
  std::stop_source stop;
  stop.request_stop();
  work->watch(nullptr, stop.get_token());
  const auto result = work->evaluate(designs_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
  EXPECT_EQ(work->evaluated(), 0U);
}

}  // namespace
}  // namespace fleetfit::adapt
