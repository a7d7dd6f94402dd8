#pragma once

#include <Eigen/Dense>
#include <span>

namespace fleetfit::transfer {

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
