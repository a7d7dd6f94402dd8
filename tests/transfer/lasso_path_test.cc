#include "transfer/correction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fleetfit/core/random.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Problem {
  MatrixXd x;
  VectorXd y;
};

Problem random_problem(Index rows, Index columns, std::uint64_t seed) {
  core::Random random(seed);
  Problem problem{MatrixXd(rows, columns), VectorXd(rows)};
  for (double& cell : problem.x.reshaped()) cell = random.normal();
  for (double& cell : problem.y) cell = random.normal() + problem.x(0, 0);
  return problem;
}

std::vector<double> falling(double largest, int count) {
  std::vector<double> lambdas;
  for (int i = 0; i < count; ++i) lambdas.push_back(largest * std::pow(0.75, i));
  return lambdas;
}

/// The conditions that only the minimum meets: a column that was taken up correlates with what is
/// left by exactly lambda, with its coefficient's sign, and no column by more.
void expect_minimum(const Problem& problem, const VectorXd& b, double lambda, double tolerance) {
  const VectorXd left = problem.x.transpose() * (problem.y - problem.x * b);
  for (Index j = 0; j < b.size(); ++j) {
    EXPECT_LE(std::abs(left[j]), lambda + tolerance) << "column " << j;
    if (b[j] == 0) continue;
    EXPECT_NEAR(left[j], b[j] > 0 ? lambda : -lambda, tolerance) << "column " << j;
  }
}

TEST(LassoPath, IsTheMinimumForEachLambda) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{40, 12}, {25, 60}}) {
    const auto problem = random_problem(rows, columns, 7);
    const auto lambdas = falling(largest_lambda(problem.x, problem.y), 24);
    const auto path = lasso_path(problem.x, problem.y, lambdas);
    for (std::size_t i = 0; i < lambdas.size(); ++i) {
      SCOPED_TRACE(i);
      expect_minimum(problem, path.col(static_cast<Index>(i)), lambdas[i], 1e-5);
    }
  }
}

TEST(LassoPath, ShrinksByLambdaWhereColumnsAreOrthogonal) {
  const MatrixXd x = MatrixXd::Identity(3, 3);
  const VectorXd y{{5, -2, 0.5}};
  const std::vector<double> lambdas = {5, 3, 1, 0.25};
  const auto path = lasso_path(x, y, lambdas);
  const MatrixXd expected{{0, 2, 4, 4.75}, {0, 0, -1, -1.75}, {0, 0, 0, 0.25}};
  EXPECT_LT((path - expected).cwiseAbs().maxCoeff(), 1e-7);
}

TEST(LassoPath, BearsColumnsThatAreEqualOrDependOnEachOther) {
  auto problem = random_problem(30, 9, 3);
  problem.x.col(7) = problem.x.col(2);
  problem.x.col(8) = problem.x.col(0) + problem.x.col(1);
  const auto lambdas = falling(largest_lambda(problem.x, problem.y), 20);
  const auto path = lasso_path(problem.x, problem.y, lambdas);
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    SCOPED_TRACE(i);
    expect_minimum(problem, path.col(static_cast<Index>(i)), lambdas[i], 1e-4);
  }
}

TEST(LassoPath, OfBalancedColumnsTakesUpThoseThatTie) {
  // Three columns with the same correlation: all have to enter at once.
  MatrixXd x(4, 3);
  x << 1, 1, 1, 1, -1, -1, -1, 1, -1, -1, -1, 1;
  const VectorXd y = x.col(0) + x.col(1) + x.col(2);
  const std::vector<double> lambdas = {4, 2, 1};
  const auto path = lasso_path(x, y, lambdas);
  for (std::size_t i = 0; i < lambdas.size(); ++i) {
    const double expected = 1 - lambdas[i] / 4;
    for (Index j = 0; j < 3; ++j)
      EXPECT_NEAR(path(j, static_cast<Index>(i)), expected, 1e-6) << i << " " << j;
  }
}

TEST(LassoPath, OfNothingToExplainIsZero) {
  const auto problem = random_problem(10, 4, 1);
  const std::vector<double> lambdas = {1, 0.1};
  EXPECT_EQ(lasso_path(problem.x, VectorXd::Zero(10), lambdas).cwiseAbs().maxCoeff(), 0);
}

}  // namespace
}  // namespace fleetfit::transfer
