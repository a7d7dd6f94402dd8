#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <functional>
#include <vector>

namespace fleetfit::transfer {

/// What is known about designs before one of the candidates is measured.
struct ChoiceProblem {
  /// Covariance of designs that are to be predicted (rows) with candidates.
  Eigen::MatrixXd targets_by_candidates;
  Eigen::VectorXd candidate_variance;
  /// A candidate's covariance with all candidates.
  std::function<Eigen::VectorXd(Eigen::Index)> candidate_covariance;
  double noise = 0;  ///< variance of a measurement
};

/// Chooses at most `count` candidates, one after the other, each the one whose measurement lowers
/// the summed variance of all targets most; of equal ones the first.
std::vector<std::size_t> choose_greedily(ChoiceProblem problem, std::size_t count);

}  // namespace fleetfit::transfer
