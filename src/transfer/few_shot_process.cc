#include "transfer/few_shot_process.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Variance of a device's speed as a whole, in units of the variance between designs.
constexpr double kLevelVariance = 30;

double inverse(double value) { return value > 1e-12 ? 1 / value : 0; }

double weight(const LogWeights& weights, Part part) {
  return std::exp(weights[static_cast<std::size_t>(part)]);
}

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

/// The references say most.
constexpr std::array<double, kParts> kUsual = {1, 0.3, 0.1, 0.05, 0.05, 0.05};
constexpr double kDeviation = 2;  // of the weights of tables from the usual ones
/// Keeps covariances positive where a device has no noise.
constexpr double kLeastNoise = 1e-4;

LogWeights usual_weights() {
  LogWeights weights = {};
  std::ranges::transform(kUsual, weights.begin(), [](double weight) { return std::log(weight); });
  return weights;
}

}  // namespace

PartScales part_scales(const MatrixXd& typical_references) {
  const VectorXd mean = typical_references.rowwise().mean();
  return {
      .common = inverse(mean.squaredNorm() / static_cast<double>(mean.size())),
      .differences = inverse((typical_references.colwise() - mean).rowwise().squaredNorm().mean()),
      .smooth = inverse(typical_references.rowwise().squaredNorm().mean())};
}

PartKernels part_kernels(const Points& a, const Points& b, const PartScales& scales) {
  const auto count = static_cast<double>(a.references.cols());
  const MatrixXd dots = a.references * b.references.transpose();
  const MatrixXd means = a.references.rowwise().mean() * b.references.rowwise().mean().transpose();
  const VectorXd a_squares = a.references.rowwise().squaredNorm();
  const VectorXd b_squares = b.references.rowwise().squaredNorm();
  const MatrixXd distances = ((-2 * dots).colwise() + a_squares).rowwise() + b_squares.transpose();
  return {scales.common * means,
          scales.differences * (dots - count * means),
          (-0.5 * scales.smooth * distances.array()).exp().matrix(),
          a.encoded.one_hot * b.encoded.one_hot.transpose(),
          a.encoded.live * b.encoded.live.transpose(),
          a.encoded.counts * b.encoded.counts.transpose()};
}

MatrixXd weighted_sum(const PartKernels& parts, const LogWeights& weights) {
  MatrixXd sum = MatrixXd::Constant(parts[0].rows(), parts[0].cols(), kLevelVariance);
  for (std::size_t i = 0; i < kParts; ++i) sum += std::exp(weights[i]) * parts[i];
  return sum;
}

VectorXd self_similarity(const Points& points, const PartScales& scales,
                         const LogWeights& weights) {
  const auto count = static_cast<double>(points.references.cols());
  const Eigen::ArrayXd squares = points.references.rowwise().squaredNorm();
  const Eigen::ArrayXd means = points.references.rowwise().mean().cwiseAbs2();
  return kLevelVariance + weight(weights, Part::common) * scales.common * means +
         weight(weights, Part::differences) * scales.differences * (squares - count * means) +
         weight(weights, Part::smooth) +
         weight(weights, Part::one_hot) * points.encoded.one_hot.rowwise().squaredNorm().array() +
         weight(weights, Part::live) * points.encoded.live.rowwise().squaredNorm().array() +
         weight(weights, Part::counts) * points.encoded.counts.rowwise().squaredNorm().array();
}

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

LogWeights learn_weights(std::span<const ReferenceEvidence> devices) {
  const LogWeights usual = usual_weights();
  LogWeights weights = usual;
  if (devices.empty()) return weights;
  const auto objective = [&](std::span<const double> tried) {
    LogWeights tried_weights = {};
    std::ranges::copy(tried, tried_weights.begin());
    double cost = 0;
    for (const auto& [observations, noise] : devices) {
      Eigen::MatrixXd covariance = weighted_sum(observations.kernels, tried_weights);
      covariance.diagonal().array() += noise + kLeastNoise;
      cost += misfit(covariance, observations.levels) / static_cast<double>(devices.size());
    }
    for (std::size_t i = 0; i < kParts; ++i)
      cost += 0.5 * std::pow((tried[i] - usual[i]) / kDeviation, 2);
    return cost;
  };
  pattern_search(objective, weights, {.step = 1.4, .sweeps = 3});
  return weights;
}

std::vector<std::size_t> choose_greedily(ChoiceProblem problem, std::size_t count) {
  auto& open = problem.targets_by_candidates;  // what is still unknown
  auto& variance = problem.candidate_variance;
  const Index candidates = variance.size();
  const Index steps = std::min(static_cast<Index>(count), candidates);
  Eigen::MatrixXd learned(candidates, steps);  // about each candidate by each step
  Eigen::ArrayXd eligible = Eigen::ArrayXd::Ones(candidates);
  std::vector<std::size_t> chosen;
  for (Index step = 0; step < steps; ++step) {
    const Eigen::ArrayXd gain = open.colwise().squaredNorm().transpose().array() /
                                (variance.array().max(0) + problem.noise);
    Index best = 0;
    (eligible * (1 + gain)).maxCoeff(&best);
    eligible[best] = 0;
    chosen.push_back(static_cast<std::size_t>(best));

    const double deviation = std::sqrt(std::max(variance[best], 0.0) + problem.noise);
    learned.col(step) = problem.candidate_covariance(best);
    learned.col(step) -= learned.leftCols(step) * learned.row(best).head(step).transpose();
    learned.col(step) /= deviation;
    const Eigen::VectorXd about_targets = open.col(best) / deviation;
    open.noalias() -= about_targets * learned.col(step).transpose();
    variance -= learned.col(step).cwiseAbs2();
  }
  return chosen;
}

}  // namespace fleetfit::transfer
