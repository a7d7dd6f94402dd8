#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "tests/train/surroundings.h"
#include "train/fit.h"

namespace fleetfit::train {
namespace {

// A network whose errors are known beforehand, one for each epoch; the last one stays.
class PlayedFit final : public Fit {
 public:
  PlayedFit(std::vector<double> errors, std::vector<double>* rates)
      : errors_(std::move(errors)), rates_(rates) {}

  void run_epoch(double rate) override {
    ++epoch_;
    if (rates_ != nullptr) rates_->push_back(rate);
  }
  double validation_percent() override { return errors_[std::min(epoch_, errors_.size()) - 1]; }
  void keep() override { kept_ = epoch_; }
  std::size_t kept() const { return kept_; }

 private:
  std::vector<double> errors_;
  std::vector<double>* rates_;
  std::size_t epoch_ = 0;
  std::size_t kept_ = 0;
};

class SearchTest : public testing::Test {
 protected:
  Deadline endless() const { return {.clock = clock_, .end = {}, .stop = {}}; }

  core::SystemClock clock_;
};

TEST_F(SearchTest, KeepsTheBestEpochAndEndsWhenPatienceIsOver) {
  auto fit = std::make_unique<PlayedFit>(std::vector<double>{9, 5, 7, 4, 6}, nullptr);
  const auto& played = *fit;
  Training training(std::move(fit), 0.1);
  training.run(100, 10, endless());
  EXPECT_EQ(played.kept(), 4u);
  EXPECT_EQ(training.best_epoch(), 4);
  EXPECT_EQ(training.best_percent(), 4);
  EXPECT_EQ(training.ended(), Ended::patience);
}

TEST_F(SearchTest, LowersTheRateWhenThereIsNoProgress) {
  std::vector<double> rates;
  Training training(std::make_unique<PlayedFit>(std::vector<double>{9, 5}, &rates), 1.0);
  training.run(100, 8, endless());
  ASSERT_EQ(rates.size(), 10u);
  EXPECT_EQ(rates.front(), 1.0);
  EXPECT_LT(rates.back(), rates.front());
  EXPECT_TRUE(std::is_sorted(rates.rbegin(), rates.rend()));
}

TEST_F(SearchTest, CanBeContinued) {
  Training training(std::make_unique<PlayedFit>(std::vector<double>{9, 5, 7, 4, 6}, nullptr), 0.1);
  training.run(3, 10, endless());
  EXPECT_EQ(training.ended(), Ended::epochs);
  EXPECT_EQ(training.best_epoch(), 2);
  training.run(5, 10, endless());
  EXPECT_EQ(training.best_epoch(), 4);
}

TEST_F(SearchTest, TakesTheSmallerOfTwoThatAreAboutAsGood) {
  Surroundings here;
  const auto candidate = [](double error, std::size_t weights) {
    return Candidate{
        .make = [error] { return std::make_unique<PlayedFit>(std::vector{error}, nullptr); },
        .rate = 0.1,
        .weights = weights};
  };
  // Two of eight go to the end.
  std::vector<Candidate> candidates(6, candidate(20, 1));
  candidates.push_back(candidate(5.00, 1000));
  candidates.push_back(candidate(5.05, 100));
  const auto progress = core::make_silent_progress();
  core::ProgressTask task(*progress, {.name = "search"});
  core::ThreadPool pool(2);
  EXPECT_EQ(search(candidates, {}, endless(), pool, task).candidate, 7u);
  candidates[7] = candidate(6, 100);
  EXPECT_EQ(search(candidates, {}, endless(), pool, task).candidate, 6u);
}

TEST(SplitSamples, SetsAFifthAside) {
  std::vector<std::size_t> samples(50);
  std::iota(samples.begin(), samples.end(), 0);
  const auto split = split_samples(samples, core::Random(1));
  EXPECT_EQ(split.validation.size(), 10u);
  auto all = split.training;
  all.insert(all.end(), split.validation.begin(), split.validation.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, samples);
}

TEST(SplitSamples, OfAFewUsesAllForBoth) {
  const auto split = split_samples({3, 4}, core::Random(1));
  EXPECT_EQ(split.training.size(), 2u);
  EXPECT_EQ(split.validation.size(), 2u);
}

}  // namespace
}  // namespace fleetfit::train
