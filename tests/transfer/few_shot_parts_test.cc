#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fleetfit/core/random.h"
#include "transfer/few_shot_process.h"
#include "transfer/few_shot_references.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr LogWeights kCommonAlone = {0, kNothing, kNothing, kNothing, kNothing, kNothing};

/// Parts of which only the first is not 0.
PartKernels common_part(const MatrixXd& kernel) {
  PartKernels parts;
  parts.fill(MatrixXd::Zero(kernel.rows(), kernel.cols()));
  parts[0] = kernel;
  return parts;
}

TEST(FewShotPosterior, OfTwoSamplesIsWhatOneWorksOutByHand) {
  // With the constant 30: covariance [[31.5, 30.5], [30.5, 31.5]], determinant 62, so that the
  // coefficients of (1, -1) are (1, -1).
  const Observations observations{.kernels = common_part(MatrixXd{{1, 0.5}, {0.5, 1}}),
                                  .levels = VectorXd{{1, -1}},
                                  .rounding = VectorXd::Zero(2)};
  const auto posterior =
      condition(observations, {.weights = kCommonAlone, .noise = 0.5}, VectorXd::Constant(2, 0.5));
  const MatrixXd similarity = weighted_sum(common_part(MatrixXd{{0.8, 0.2}}), kCommonAlone);

  EXPECT_NEAR(posterior.mean(similarity)[0], 0.6, 1e-12);
  // 31 - (31.5 (30.8^2 + 30.2^2) - 61 * 30.8 * 30.2) / 62
  EXPECT_NEAR(posterior.variance(similarity, VectorXd::Constant(1, 31))[0], 31 - 1871.66 / 62,
              1e-9);
}

TEST(FewShotPosterior, MisfitIsTheNegativeLogarithmOfANormalDensity) {
  EXPECT_NEAR(misfit(MatrixXd{{4}}, VectorXd{{2}}), 0.5 + std::log(2.0), 1e-12);
  EXPECT_EQ(misfit(MatrixXd{{-1}}, VectorXd{{2}}), std::numeric_limits<double>::infinity());
}

/// Samples on the line y = 2 x, which a linear kernel describes.
struct Line {
  VectorXd x = VectorXd::LinSpaced(12, -1.5, 1.5);
  Observations observations{
      .kernels = common_part(x * x.transpose()), .levels = 2 * x, .rounding = VectorXd::Zero(12)};

  double slope() const {
    const auto posterior = fit_posterior(observations, {.weights = kCommonAlone, .noise = 0.01});
    const VectorXd at = VectorXd{{0, 1}};
    const VectorXd mean =
        posterior.mean(weighted_sum(common_part(at * x.transpose()), posterior.weights));
    return mean[1] - mean[0];
  }
};

TEST(FewShotPosterior, BearsAnOutlier) {
  Line line;
  EXPECT_NEAR(line.slope(), 2, 0.05);
  line.observations.levels[10] += 8;  // least squares would give a slope of 2.8

  const auto posterior = fit_posterior(line.observations, {.weights = kCommonAlone, .noise = 0.01});
  Index noisiest = 0;
  posterior.sample_noise.maxCoeff(&noisiest);
  EXPECT_EQ(noisiest, 10);
  EXPECT_NEAR(line.slope(), 2, 0.1);
}

TEST(FewShotPosterior, RaisesTheNoiseOfADeviceThatIsNoisierThanOthers) {
  Line line;
  core::Random random(4);
  for (double& level : line.observations.levels) level += random.normal() * 0.5;
  const double prior = 0.01;
  const auto posterior =
      fit_posterior(line.observations, {.weights = kCommonAlone, .noise = prior});
  EXPECT_GT(posterior.noise, 3 * prior);
}

TEST(PatternSearch, WalksToTheLowestPoint) {
  std::array<double, 2> point = {0, 0};
  pattern_search(
      [](std::span<const double> x) {
        return std::pow(x[0] - 3, 2) + 2 * std::pow(x[1] + 1.25, 2);
      },
      point, {.step = 1, .sweeps = 6});
  EXPECT_NEAR(point[0], 3, 0.05);
  EXPECT_NEAR(point[1], -1.25, 0.05);
}

TEST(LearnWeights, TrustsThePartThatExplainsTheDevices) {
  // Levels follow the part "counts" and have nothing to do with the part "common".
  const VectorXd counts = VectorXd::LinSpaced(20, -2, 2);
  VectorXd common(20);
  for (Index i = 0; i < 20; ++i) common[i] = i % 2 == 0 ? 1 : -1;
  ReferenceEvidence device{.observations = {.kernels = common_part(common * common.transpose()),
                                            .levels = counts,
                                            .rounding = VectorXd::Zero(20)},
                           .noise = 0.01};
  device.observations.kernels[static_cast<std::size_t>(Part::counts)] = counts * counts.transpose();
  const LogWeights usual = learn_weights({});
  const LogWeights learned = learn_weights(std::vector(3, device));
  EXPECT_GT(learned[static_cast<std::size_t>(Part::counts)],
            usual[static_cast<std::size_t>(Part::counts)] + 1);
  EXPECT_LT(learned[static_cast<std::size_t>(Part::common)],
            usual[static_cast<std::size_t>(Part::common)] - 1);
}

TEST(ChooseGreedily, TakesWhatTellsMostAndNothingThatIsKnownAlready) {
  // Two unknowns: u stands behind two targets, v behind one. Candidates: v, u, and u again.
  const MatrixXd among_candidates{{1, 0, 0}, {0, 1, 1}, {0, 1, 1}};
  const ChoiceProblem problem{
      .targets_by_candidates = MatrixXd{{1, 0, 0}, {0, 1, 1}, {0, 1, 1}},
      .candidate_variance = VectorXd::Ones(3),
      .candidate_covariance = [&](Index i) -> VectorXd { return among_candidates.col(i); },
      .noise = 0.01};
  EXPECT_THAT(choose_greedily(problem, 3), testing::ElementsAre(1, 0, 2));
  EXPECT_THAT(choose_greedily(problem, 1), testing::ElementsAre(1));
  EXPECT_THAT(choose_greedily(problem, 9), testing::SizeIs(3));
}

TEST(LatencyScale, IsInvertedAndStaysPositiveAndInOrder) {
  const LatencyScale scale{.typical_ms = 8};
  EXPECT_NEAR(scale.to_level(8), std::log(2.0), 1e-12);
  for (const double ms : {0.1, 1.0, 8.0, 500.0})
    EXPECT_NEAR(scale.to_ms(scale.to_level(ms)), ms, 1e-9);
  double before = 0;
  for (double level = -1; level < 2; level += 0.01) {
    EXPECT_GT(scale.to_ms(level), before);
    before = scale.to_ms(level);
  }
}

TEST(FitReferences, FindsALinearDeviceDespiteAWildMeasurement) {
  core::Random random(1);
  MatrixXd columns(60, 3);
  for (double& cell : columns.reshaped()) cell = random.normal();
  const VectorXd weights{{0.5, -1, 2}};
  ReferenceSamples samples;
  samples.levels = (columns * weights).array() + 7;
  for (Index row = 0; row < 60; ++row) samples.rows.push_back(row);
  samples.levels[20] += 50;

  const auto models = fit_references(columns, std::vector{samples});

  ASSERT_EQ(models.size(), 1u);
  EXPECT_LT((models[0].weights - weights).norm(), 0.3);  // 3 and more without bounds to outliers
  EXPECT_NEAR(models[0].intercept, 7, 0.3);
  EXPECT_LT(models[0].levels[20], samples.levels[20] - 20);
}

}  // namespace
}  // namespace fleetfit::transfer
