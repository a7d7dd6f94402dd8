#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fleetfit::core {

/// Cholesky's factor of a small positive definite matrix, for modules that do without Eigen.
class Cholesky {
 public:
  Cholesky() = default;

  /// `lower` is the matrix's lower triangle, row by row. A matrix that is positive definite but for
  /// rounding is taken as the nearest one that is.
  explicit Cholesky(std::vector<double> lower);

  /// Solves L x = b in the place of b, where L is the factor: what was correlated like the matrix
  /// becomes independent.
  void whiten(std::span<double> b) const;

  /// Solves A x = b in the place of b, where A is the matrix.
  void solve(std::span<double> b) const;

  /// The logarithm of the matrix's determinant.
  double log_determinant() const;

 private:
  std::vector<double> factor_;  // lower triangle, row by row
  std::size_t size_ = 0;
};

}  // namespace fleetfit::core
