#include "adapt/search/linear_posterior.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace fleetfit::adapt {
namespace {

double weighted_sum(const FeatureRow& row, std::span<const double> weights) {
  double sum = 0;
  for (const auto& [index, value] : row) sum += value * weights[index];
  return sum;
}

}  // namespace

LinearPosterior::LinearPosterior(LinearPrior prior, std::vector<FeatureRow> rows,
                                 std::span<const double> targets,
                                 std::span<const double> noise_variance)
    : prior_(std::move(prior)), rows_(std::move(rows)), weights_(prior_.mean) {
  std::vector<double> covariance;
  std::vector<double> residuals;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      covariance.push_back(prior_covariance(rows_[i], rows_[j]) + (i == j ? noise_variance[i] : 0));
    residuals.push_back(targets[i] - weighted_sum(rows_[i], prior_.mean));
  }
  factor_ = core::Cholesky(std::move(covariance));
  alpha_ = residuals;
  factor_.solve(alpha_);
  log_evidence_ = -0.5 * factor_.log_determinant();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    log_evidence_ -= 0.5 * residuals[i] * alpha_[i] + 0.5 * std::log(2 * std::numbers::pi);
    for (const auto& [index, value] : rows_[i])
      weights_[index] += prior_.variance[index] * value * alpha_[i];
  }
}

double LinearPosterior::prior_covariance(const FeatureRow& a, const FeatureRow& b) const {
  double sum = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (i->index == j->index)
      sum += prior_.variance[i->index] * i->value * (j++)->value;
    else if (i->index > j->index) {
      ++j;
      continue;
    }
    ++i;
  }
  return sum;
}

LinearPrediction LinearPosterior::predict(const FeatureRow& row) const {
  std::vector<double> covariances(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) covariances[i] = prior_covariance(row, rows_[i]);
  auto solved = covariances;
  factor_.solve(solved);
  double variance = prior_covariance(row, row);
  for (std::size_t i = 0; i < rows_.size(); ++i) variance -= covariances[i] * solved[i];
  return {.mean = weighted_sum(row, weights_), .variance = std::max(variance, 0.0)};
}

std::vector<double> LinearPosterior::left_out_residuals() const {
  std::vector<double> residuals(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::vector<double> unit(rows_.size());
    unit[i] = 1;
    factor_.solve(unit);
    residuals[i] = alpha_[i] / unit[i];
  }
  return residuals;
}

}  // namespace fleetfit::adapt
