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

std::size_t place(std::size_t row, std::size_t column) { return row * (row + 1) / 2 + column; }

/// Cholesky's factor in the place of a positive definite matrix, of which the lower triangle is
/// given.
void factorize(std::vector<double>& matrix, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = matrix[place(i, j)];
      for (std::size_t k = 0; k < j; ++k) rest -= matrix[place(i, k)] * matrix[place(j, k)];
      matrix[place(i, j)] = i == j ? std::sqrt(rest) : rest / matrix[place(j, j)];
    }
  }
}

}  // namespace

LinearPosterior::LinearPosterior(LinearPrior prior, std::vector<FeatureRow> rows,
                                 std::span<const double> targets,
                                 std::span<const double> noise_variance)
    : prior_(std::move(prior)), rows_(std::move(rows)), weights_(prior_.mean) {
  const std::size_t size = rows_.size();
  std::vector<double> residuals(size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      factor_.push_back(prior_covariance(rows_[i], rows_[j]) + (i == j ? noise_variance[i] : 0));
    residuals[i] = targets[i] - weighted_sum(rows_[i], prior_.mean);
  }
  factorize(factor_, size);
  alpha_ = solve(residuals);
  for (std::size_t i = 0; i < size; ++i) {
    log_evidence_ -= 0.5 * residuals[i] * alpha_[i] + std::log(factor_[place(i, i)]) +
                     0.5 * std::log(2 * std::numbers::pi);
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

std::vector<double> LinearPosterior::solve(std::vector<double> right) const {
  const std::size_t size = right.size();
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < i; ++k) right[i] -= factor_[place(i, k)] * right[k];
    right[i] /= factor_[place(i, i)];
  }
  for (std::size_t i = size; i-- > 0;) {
    for (std::size_t k = i + 1; k < size; ++k) right[i] -= factor_[place(k, i)] * right[k];
    right[i] /= factor_[place(i, i)];
  }
  return right;
}

Belief LinearPosterior::predict(const FeatureRow& row) const {
  std::vector<double> covariances(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) covariances[i] = prior_covariance(row, rows_[i]);
  const auto solved = solve(covariances);
  double variance = prior_covariance(row, row);
  for (std::size_t i = 0; i < rows_.size(); ++i) variance -= covariances[i] * solved[i];
  return {.mean = weighted_sum(row, weights_), .variance = std::max(variance, 0.0)};
}

std::vector<double> LinearPosterior::left_out_residuals() const {
  std::vector<double> residuals(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::vector<double> unit(rows_.size());
    unit[i] = 1;
    residuals[i] = alpha_[i] / solve(std::move(unit))[i];
  }
  return residuals;
}

}  // namespace fleetfit::adapt
