#pragma once

#include <Eigen/Dense>
#include <cstddef>
#include <span>

#include "fleetfit/core/result.h"

namespace fleetfit::transfer {

/// What a proxy says of some designs beside what was measured for them on the target. Borrows.
struct CorrectionSamples {
  const Eigen::VectorXd& proxy;
  const Eigen::VectorXd& target;
  /// Ways to look at the designs: each a row for each design and a column for each thing whose
  /// price may differ from what the proxy says. The best of them is taken.
  std::span<const Eigen::MatrixXd> bases;
};

struct CorrectionOptions {
  int held_out = 20;  ///< samples that are set aside at a time; each of them is once
  int lambdas = 40;
};

/// target = constant + alpha x proxy + basis x coefficients, with few coefficients.
struct Correction {
  std::size_t basis = 0;
  double constant = 0;
  double alpha = 1;
  Eigen::VectorXd coefficients = {};
  double lambda = 0;         ///< of equation (3): mean squared error + lambda |b|
  double held_out_srcc = 0;  ///< rank correlation of answers for samples that were set aside
  double proxy_srcc = 0;     ///< rank correlation of what the proxy says
  bool keeps_proxy = false;  ///< all coefficients are 0, as samples do not speak for others
};

/// Takes lambda and the basis that have the least squared error on samples that are set aside, and
/// bears outliers. Keeps the proxy unless the order of these samples becomes better. Fails with
/// `invalid_input` if there are too few samples or if all of the target's are equal.
Result<Correction> fit_correction(const CorrectionSamples& samples,
                                  const CorrectionOptions& options);

/// For each lambda (a column of the result) the minimum over b of
///   1/2 |y - x b|^2 + lambda |b|_1,
/// exact but for a hair of ridge, which makes it unique where columns depend on each other. The
/// way of b is piecewise linear in lambda, and is followed from corner to corner. `lambdas` are
/// positive and fall.
Eigen::MatrixXd lasso_path(const Eigen::MatrixXd& x, const Eigen::VectorXd& y,
                           std::span<const double> lambdas);

/// The least lambda for which b is 0.
double largest_lambda(const Eigen::MatrixXd& x, const Eigen::VectorXd& y);

}  // namespace fleetfit::transfer
