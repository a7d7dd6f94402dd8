#include <algorithm>
#include <array>
#include <cmath>

#include "transfer/few_shot_posterior.h"

namespace fleetfit::transfer {
namespace {

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

}  // namespace fleetfit::transfer
