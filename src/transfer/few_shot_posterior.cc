#include "transfer/few_shot_posterior.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Student's t: the fewer, the heavier the tails.
constexpr double kFreedom = 4;
/// Rounds of weighing samples; in the first ones the prior stands, so that an outlier is found
/// before noise is made large enough to hold it.
constexpr int kRounds = 8;
constexpr int kRoundsWithPrior = 2;
/// Half the width of intervals that hold nine of ten values, of the normal distribution and of
/// Student's t, both of width 1.
constexpr double kNineOfTenNormal = 1.6449;
constexpr double kNineOfTenStudent = 2.1318;
/// Weights and noise are few numbers: more samples tell little more about them, and cost much.
constexpr Index kMostForShifts = 120;

/// How far a device lies from the prior, as logarithms.
constexpr std::size_t kScale = 0;
constexpr std::size_t kNoise = 1;
constexpr std::size_t kOwn = 2;
using Shifts = std::array<double, 3>;
constexpr double kScaleDeviation = 0.7;  // of devices from each other
constexpr double kOwnDeviation = 1;

/// `kOwn` moves all that the references do not say along lines.
DevicePrior shifted(const DevicePrior& prior, std::span<const double> shifts) {
  DevicePrior moved = prior;
  for (std::size_t i = 0; i < kParts; ++i) {
    moved.weights[i] += shifts[kScale];
    if (i >= static_cast<std::size_t>(Part::smooth)) moved.weights[i] += shifts[kOwn];
  }
  moved.noise *= std::exp(shifts[kNoise]);
  return moved;
}

MatrixXd covariance(const Observations& observations, const LogWeights& weights,
                    const VectorXd& sample_noise) {
  MatrixXd sum = weighted_sum(observations.kernels, weights);
  sum.diagonal() += sample_noise;
  return sum;
}

VectorXd noise_of_samples(const Observations& observations, double noise, const VectorXd& trust) {
  return noise * trust.cwiseInverse() + observations.rounding;
}

/// Numbers of at most `most` samples, evenly spread.
std::vector<Index> spread_samples(Index count, Index most) {
  std::vector<Index> numbers(static_cast<std::size_t>(std::min(count, most)));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<Index>(i) * count / static_cast<Index>(numbers.size());
  return numbers;
}

Observations pick(const Observations& observations, const std::vector<Index>& samples) {
  Observations picked{.kernels = {},
                      .levels = observations.levels(samples),
                      .rounding = observations.rounding(samples)};
  for (std::size_t i = 0; i < kParts; ++i)
    picked.kernels[i] = observations.kernels[i](samples, samples);
  return picked;
}

void fit_shifts(const Observations& observations, const DevicePrior& prior, const VectorXd& trust,
                Shifts& shifts) {
  const Shifts deviations = {kScaleDeviation, prior.noise_deviation, kOwnDeviation};
  const auto objective = [&](std::span<const double> tried) {
    const DevicePrior moved = shifted(prior, tried);
    double cost = misfit(
        covariance(observations, moved.weights, noise_of_samples(observations, moved.noise, trust)),
        observations.levels);
    for (std::size_t i = 0; i < deviations.size(); ++i)
      cost += 0.5 * std::pow(tried[i] / deviations[i], 2);
    return cost;
  };
  pattern_search(objective, shifts, {});
}

/// Expected precision of each sample under Student's t, relative to the noise.
VectorXd trust_in_samples(const Posterior& posterior, const Observations& observations) {
  const VectorXd& noise = posterior.sample_noise;
  const MatrixXd inverse = posterior.factor.solve(MatrixXd::Identity(noise.size(), noise.size()));
  const Eigen::ArrayXd residual = noise.cwiseProduct(posterior.coefficients);
  const Eigen::ArrayXd variance =
      (noise.array() - noise.array().square() * inverse.diagonal().array()).max(0);
  const Eigen::ArrayXd usual = posterior.noise + observations.rounding.array();
  return (kFreedom + 1) / (kFreedom + (residual.square() + variance) / usual);
}

}  // namespace

VectorXd Posterior::variance(const MatrixXd& similarity, const VectorXd& self) const {
  const MatrixXd whitened = factor.matrixL().solve(similarity.transpose());
  return (self - whitened.colwise().squaredNorm().transpose()).cwiseMax(0);
}

double Posterior::reach(double variance) const {
  return std::sqrt(kNineOfTenNormal * kNineOfTenNormal * variance +
                   kNineOfTenStudent * kNineOfTenStudent * noise);
}

Posterior condition(const Observations& observations, const DevicePrior& prior,
                    VectorXd sample_noise) {
  Posterior posterior{.weights = prior.weights,
                      .noise = prior.noise,
                      .sample_noise = std::move(sample_noise),
                      .factor = {},
                      .coefficients = {}};
  posterior.factor.compute(covariance(observations, prior.weights, posterior.sample_noise));
  posterior.coefficients = posterior.factor.solve(observations.levels);
  return posterior;
}

Posterior fit_posterior(const Observations& observations, const DevicePrior& prior) {
  VectorXd trust = VectorXd::Ones(observations.levels.size());
  const auto telling = spread_samples(trust.size(), kMostForShifts);
  const Observations chosen = pick(observations, telling);
  Shifts shifts = {};
  DevicePrior device = prior;
  for (int round = 0; round < kRounds; ++round) {
    if (round >= kRoundsWithPrior) {
      fit_shifts(chosen, prior, trust(telling), shifts);
      device = shifted(prior, shifts);
    }
    const Posterior posterior =
        condition(observations, device, noise_of_samples(observations, device.noise, trust));
    trust = trust_in_samples(posterior, observations);
  }
  return condition(observations, device, noise_of_samples(observations, device.noise, trust));
}

double misfit(const MatrixXd& covariance, const VectorXd& values) {
  const Eigen::LLT<MatrixXd> factor(covariance);
  if (factor.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
  const VectorXd whitened = factor.matrixL().solve(values);
  return 0.5 * whitened.squaredNorm() + factor.matrixLLT().diagonal().array().log().sum();
}

void pattern_search(const std::function<double(std::span<const double>)>& objective,
                    std::span<double> point, const PatternSearchOptions& options) {
  constexpr double kLeastGain = 1e-7;
  constexpr int kMostSteps = 12;  // in one direction
  double least = objective(point);
  const auto walk = [&](double& coordinate, double step) {
    for (int steps = 0; steps < kMostSteps; ++steps) {
      const double before = coordinate;
      coordinate += step;
      const double cost = objective(point);
      if (!(cost < least - kLeastGain)) {
        coordinate = before;
        return steps > 0;
      }
      least = cost;
    }
    return true;
  };
  double step = options.step;
  for (int sweep = 0; sweep < options.sweeps; ++sweep, step /= 2) {
    for (double& coordinate : point) {
      if (!walk(coordinate, step)) walk(coordinate, -step);
    }
  }
}

}  // namespace fleetfit::transfer
