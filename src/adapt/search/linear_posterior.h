#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fleetfit/core/cholesky.h"

namespace fleetfit::adapt {

/// What is expected of the weights of a linear model before anything is seen: independent normal
/// distributions.
struct LinearPrior {
  std::vector<double> mean = {};
  std::vector<double> variance = {};  ///< 0: the weight is known
};

/// A feature of a row; all others are 0. Those of a row stand in the order of their index.
struct Feature {
  std::size_t index = 0;
  double value = 1;
};
using FeatureRow = std::vector<Feature>;

struct LinearPrediction {
  double mean = 0;
  double variance = 0;  ///< of the mean, without noise
};

/// The weights after some rows were seen with their targets: Bayesian linear regression, in the
/// form whose cost depends on the number of rows and not on that of the features.
class LinearPosterior {
 public:
  /// Each target has a noise of its own, whose variance is positive. There may be no row at all.
  LinearPosterior(LinearPrior prior, std::vector<FeatureRow> rows, std::span<const double> targets,
                  std::span<const double> noise_variance);

  /// Mean of each weight.
  std::span<const double> weights() const { return weights_; }

  LinearPrediction predict(const FeatureRow& row) const;

  /// What each row misses its target by, as predicted by all the others.
  std::vector<double> left_out_residuals() const;

  /// How likely the targets are under prior and noise; for choosing these.
  double log_evidence() const { return log_evidence_; }

 private:
  double prior_covariance(const FeatureRow& a, const FeatureRow& b) const;

  LinearPrior prior_;
  std::vector<FeatureRow> rows_;
  core::Cholesky factor_;      // of covariance + noise
  std::vector<double> alpha_;  // (covariance + noise)^-1 (target - prior mean)
  std::vector<double> weights_;
  double log_evidence_ = 0;
};

}  // namespace fleetfit::adapt
