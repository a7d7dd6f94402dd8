#include <gmock/gmock.h>

#include "fleetfit/core/random.h"
#include "fleetfit/transfer/monotonicity.h"

namespace fleetfit::transfer {
namespace {

using testing::HasSubstr;

/// Two columns that agree more or less.
struct Pair {
  std::vector<double> a;
  std::vector<double> b;
};

Pair noisy_pair(std::size_t size, double noise) {
  core::Random random(11);
  Pair pair;
  for (std::size_t i = 0; i < size; ++i) {
    pair.a.push_back(random.normal());
    pair.b.push_back(pair.a.back() + noise * random.normal());
  }
  return pair;
}

TEST(SrccInterval, IsThatOfFishersTransform) {
  // By Python's math: tanh(atanh(.9) -+ 1.959964 * sqrt((1 + .9**2 / 2) / 27)).
  const auto interval = srcc_interval(0.9, 30);
  EXPECT_NEAR(interval.low, 0.771944, 1e-5);
  EXPECT_NEAR(interval.high, 0.957861, 1e-5);
}

TEST(SrccEstimate, IsSpearmansOfTheSamplesWithItsInterval) {
  const auto estimate =
      estimate_srcc(std::vector<double>{1, 2, 3, 4, 5}, std::vector<double>{2, 1, 3, 5, 4}).value();
  EXPECT_NEAR(estimate.srcc, 0.8, 1e-12);
  EXPECT_LT(estimate.ci95.low, 0.8);
  EXPECT_GT(estimate.ci95.high, 0.8);
  EXPECT_EQ(estimate.samples, 5u);
}

TEST(SrccEstimate, DecidesOnlyWhereTheIntervalLiesOnOneSide) {
  const SrccEstimate estimate{.srcc = 0.9, .ci95 = {.low = 0.8, .high = 0.95}, .samples = 40};
  EXPECT_EQ(compare(estimate, 0.75), Verdict::holds);
  EXPECT_EQ(compare(estimate, 0.9), Verdict::undecided);
  EXPECT_EQ(compare(estimate, 0.96), Verdict::fails);
}

TEST(SrccEstimate, NeedsMoreSamplesTheNearerTheThresholdIs) {
  const auto far = samples_to_decide(0.5, 0.9).value();
  const auto near = samples_to_decide(0.85, 0.9).value();
  EXPECT_LT(far, near);
  // So many samples decide, and one fewer does not.
  EXPECT_LT(srcc_interval(0.85, near).high, 0.9);
  EXPECT_GE(srcc_interval(0.85, near - 1).high, 0.9);
  EXPECT_FALSE(samples_to_decide(0.9, 0.9));
}

TEST(SrccEstimate, RefusesSamplesWithoutAnOrder) {
  const std::vector<double> flat = {3, 3, 3, 3};
  EXPECT_FALSE(estimate_srcc(flat, std::vector<double>{1, 2, 3, 4}));
  EXPECT_THAT(estimate_srcc(std::vector<double>{1, 2}, std::vector<double>{1, 2}).error().message,
              HasSubstr("2 samples are too few"));
}

TEST(SrccSpread, OfAllDesignsIsTheirCorrelationWithoutSpread) {
  const auto [a, b] = noisy_pair(40, 0.5);
  core::ThreadPool pool(1);
  const auto spread = srcc_spread(a, b, {.samples = 40, .trials = 20}, pool).value();
  EXPECT_NEAR(spread.mean, core::spearman(a, b).value(), 1e-12);
  EXPECT_NEAR(spread.stddev, 0, 1e-12);
}

TEST(SrccSpread, IsNarrowerForMoreSamplesAndHoldsTheTruth) {
  const auto [a, b] = noisy_pair(2000, 0.4);
  core::ThreadPool pool(1);
  const auto few = srcc_spread(a, b, {.samples = 10, .trials = 200}, pool).value();
  const auto many = srcc_spread(a, b, {.samples = 80, .trials = 200}, pool).value();
  const double truth = core::spearman(a, b).value();
  EXPECT_LT(many.stddev, few.stddev / 2);
  EXPECT_LT(many.ci95.low, truth);
  EXPECT_GT(many.ci95.high, truth);
  EXPECT_NEAR(many.mean, truth, 0.02);
}

TEST(SrccSpread, IsTheSameOnAnyNumberOfThreads) {
  const auto [a, b] = noisy_pair(500, 0.4);
  core::ThreadPool one(1);
  core::ThreadPool four(4);
  const SpreadOptions options{.samples = 20, .trials = 100, .seed = 9};
  const auto first = srcc_spread(a, b, options, one).value();
  const auto second = srcc_spread(a, b, options, four).value();
  EXPECT_EQ(first.mean, second.mean);
  EXPECT_EQ(first.ci95, second.ci95);
}

TEST(SrccSpread, CountsTrialsWithoutAnOrder) {
  // A sample of two designs has an order on `b` only if the one that differs is in it.
  const std::vector<double> a = {1, 2, 3, 4};
  const std::vector<double> b = {5, 5, 5, 6};
  core::ThreadPool pool(1);
  const auto spread = srcc_spread(a, b, {.samples = 2, .trials = 400}, pool).value();
  EXPECT_EQ(spread.mean, 1);
  EXPECT_NEAR(static_cast<double>(spread.undefined), 200, 60);
}

TEST(SrccSpread, NamesSamplesThatAreTooMany) {
  const auto [a, b] = noisy_pair(10, 0.4);
  core::ThreadPool pool(1);
  EXPECT_THAT(srcc_spread(a, b, {.samples = 11}, pool).error().message,
              HasSubstr("11 samples were asked for, expected 2 to 10"));
}

TEST(EnoughSamples, AreFewWhereTheThresholdIsFarAndNoneWhereItIsTheTruth) {
  const auto [a, b] = noisy_pair(400, 0.4);
  core::ThreadPool pool(1);
  const SpreadOptions options{.trials = 100};
  const auto far = enough_samples(a, b, 0.3, options, pool).value();
  const auto near = enough_samples(a, b, 0.85, options, pool).value();
  ASSERT_TRUE(far);
  ASSERT_TRUE(near);
  EXPECT_LT(*far, 15u);
  EXPECT_GT(*near, *far);
}

}  // namespace
}  // namespace fleetfit::transfer
