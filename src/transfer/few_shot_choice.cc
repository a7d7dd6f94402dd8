#include "transfer/few_shot_choice.h"

#include <algorithm>
#include <cmath>

namespace fleetfit::transfer {

using Eigen::Index;

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
