#pragma once

#include <Eigen/Dense>
#include <span>
#include <vector>

namespace fleetfit::transfer {

/// Coefficients for a series of penalties; a column for each.
struct LassoPath {
  std::vector<double> lambdas;   ///< falling
  Eigen::MatrixXd coefficients;  ///< coefficients.col(i) belongs to lambdas[i]
};

/// For each lambda = share x (the least lambda for which nothing is taken up) the minimum over b of
///   1/2 |y - x b|^2 + lambda |b|_1,
/// exact but for a hair of ridge that makes it unique where columns depend on each other: the way
/// of b is piecewise linear in lambda, and the path is followed from corner to corner. `shares` are
/// falling, from 1 on and positive.
LassoPath lasso_path(const Eigen::MatrixXd& x, const Eigen::VectorXd& y,
                     std::span<const double> shares);

}  // namespace fleetfit::transfer
