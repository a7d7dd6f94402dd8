#include "adapt/search/linear_posterior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace fleetfit::adapt {
namespace {

TEST(LinearPosterior, WeighsOneObservationAgainstThePrior) {
  // Prior N(1, 4), one target of 6 with noise 1: precision 1/4 + 1, mean (1/4 + 6) / 1.25.
  const LinearPosterior posterior({.mean = {1}, .variance = {4}}, {{{.index = 0}}},
                                  std::vector{6.0}, std::vector{1.0});
  EXPECT_NEAR(posterior.weights()[0], 5, 1e-12);
  const auto predicted = posterior.predict({{.index = 0, .value = 2}});
  EXPECT_NEAR(predicted.mean, 10, 1e-12);
  EXPECT_NEAR(predicted.variance, 4 * 0.8, 1e-12);
  // The target is normal with variance 4 + 1 around 1.
  EXPECT_NEAR(posterior.log_evidence(), -0.5 * 25 / 5 - 0.5 * std::log(2 * std::numbers::pi * 5),
              1e-12);
}

TEST(LinearPosterior, KeepsThePriorWithoutObservations) {
  const LinearPosterior posterior({.mean = {3}, .variance = {2}}, {}, {}, {});
  EXPECT_EQ(posterior.weights()[0], 3);
  EXPECT_EQ(posterior.predict({{.index = 0}}).variance, 2);
}

TEST(LinearPosterior, LeavesKnownWeightsAlone) {
  const LinearPosterior posterior({.mean = {1, 0}, .variance = {0, 1}},
                                  {{{.index = 0}, {.index = 1}}}, std::vector{5.0},
                                  std::vector{1e-9});
  EXPECT_EQ(posterior.weights()[0], 1);
  EXPECT_NEAR(posterior.weights()[1], 4, 1e-6);
}

TEST(LinearPosterior, TellsWhatARowIsMissedByWithoutFittingAgain) {
  const LinearPrior prior{.mean = {0, 0, 0}, .variance = {1, 2, 3}};
  const std::vector<FeatureRow> rows = {{{.index = 0}, {.index = 1}},
                                        {{.index = 1}, {.index = 2, .value = 2}},
                                        {{.index = 0, .value = -1}, {.index = 2}}};
  const std::vector<double> targets = {1, 2, 3};
  const std::vector<double> noise = {0.1, 0.2, 0.3};
  const auto residuals = LinearPosterior(prior, rows, targets, noise).left_out_residuals();
  for (std::size_t out = 0; out < rows.size(); ++out) {
    auto rows_left = rows;
    auto targets_left = targets;
    auto noise_left = noise;
    const auto place = static_cast<std::ptrdiff_t>(out);
    rows_left.erase(rows_left.begin() + place);
    targets_left.erase(targets_left.begin() + place);
    noise_left.erase(noise_left.begin() + place);
    const LinearPosterior others(prior, rows_left, targets_left, noise_left);
    EXPECT_NEAR(residuals[out], targets[out] - others.predict(rows[out]).mean, 1e-12);
  }
}

}  // namespace
}  // namespace fleetfit::adapt
