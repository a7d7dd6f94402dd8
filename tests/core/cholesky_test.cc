#include "fleetfit/core/cholesky.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fleetfit::core {
namespace {

// The factor of this matrix has the rows (2), (6, 1), (-8, 5, 3).
const std::vector<double> kLower = {4, 12, 37, -16, -43, 98};

TEST(Cholesky, SolvesByItsFactor) {
  const Cholesky cholesky(kLower);
  std::vector<double> x = {2, 7, 0};
  cholesky.whiten(x);
  EXPECT_EQ(x, (std::vector<double>{1, 1, 1}));
  EXPECT_NEAR(cholesky.log_determinant(), 2 * std::log(2.0 * 1 * 3), 1e-12);
}

TEST(Cholesky, SolvesEquationsOfTheMatrix) {
  // The matrix times (1, 2, 3).
  std::vector<double> x = {4 + 24 - 48, 12 + 74 - 129, -16 - 86 + 294};
  Cholesky(kLower).solve(x);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(x[i], static_cast<double>(i) + 1, 1e-9);
}

TEST(Cholesky, StaysFiniteWhereRowsAreTheSame) {
  std::vector<double> x = {1, 1};
  Cholesky({1, 1, 1}).solve(x);
  EXPECT_TRUE(std::isfinite(x[0]) && std::isfinite(x[1]));
  EXPECT_NEAR(x[0] + x[1], 1, 1e-12);
}

TEST(Cholesky, OfNothingDoesNothing) {
  const Cholesky cholesky;
  std::vector<double> none;
  cholesky.solve(none);
  EXPECT_EQ(cholesky.log_determinant(), 0);
}

}  // namespace
}  // namespace fleetfit::core
