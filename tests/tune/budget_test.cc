#include "fleetfit/tune/budget.h"

#include <gtest/gtest.h>

namespace fleetfit::tune {
namespace {

TEST(Budget, MultiBudgetGrowsInBothDimensionsUntilEachIsFull) {
  // The paper's example: 2 epochs on 10 %, at most 10 epochs.
  const BudgetOptions options = {.min_epochs = 2, .max_epochs = 10, .min_data = 0.1};

  EXPECT_EQ(budget_of_iteration(options, 1), (Budget{.epochs = 2, .data_fraction = 0.1}));
  EXPECT_EQ(budget_of_iteration(options, 3).epochs, 6);
  EXPECT_NEAR(budget_of_iteration(options, 3).data_fraction, 0.3, 1e-12);
  EXPECT_EQ(budget_of_iteration(options, 5), (Budget{.epochs = 10, .data_fraction = 0.5}));
  EXPECT_EQ(budget_of_iteration(options, 10), (Budget{.epochs = 10, .data_fraction = 1}));
  EXPECT_EQ(budget_of_iteration(options, 40), (Budget{.epochs = 10, .data_fraction = 1}));
  EXPECT_EQ(iterations(options), 10);
}

TEST(Budget, LevelsAreGeometricAndEndWithTheLargest) {
  const BudgetOptions options = {.min_epochs = 2, .max_epochs = 10, .min_data = 0.1, .eta = 2};

  const std::vector<Budget> all =
      levels(options);  // iterations 1, 2, 4 and 10; 8 is too near to 10

  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1].epochs, 4);
  EXPECT_EQ(all[2].epochs, 8);
  EXPECT_EQ(all[3], (Budget{.epochs = 10, .data_fraction = 1}));
}

TEST(Budget, OneDimensionStaysWhole) {
  const BudgetOptions epochs = {
      .kind = BudgetKind::epochs, .min_epochs = 1, .max_epochs = 16, .eta = 2};
  const BudgetOptions data = {.kind = BudgetKind::data, .min_epochs = 1, .min_data = 0.25};

  EXPECT_EQ(levels(epochs).size(), 5U);
  EXPECT_EQ(levels(epochs)[2], (Budget{.epochs = 4, .data_fraction = 1}));
  EXPECT_EQ(levels(data)[0], (Budget{.epochs = 1, .data_fraction = 0.25}));
  EXPECT_EQ(levels(data).back(), (Budget{.epochs = 1, .data_fraction = 1}));
}

TEST(Budget, ImpossibleOnesAreNamedByKey) {
  EXPECT_EQ(check({.min_epochs = 2, .max_epochs = 1}).error().message,
            "max_epochs: 1 is less than min_epochs (2)");
  EXPECT_EQ(check({.min_data = 0}).error().message, "min_data: 0 is not between 1e-06 and 1");
  EXPECT_EQ(check({.eta = 1}).error().message, "eta: 1 is not 1.1 or more");
  EXPECT_TRUE(check({.max_trials = 0}).error().message.starts_with("max_trials"));
  EXPECT_TRUE(check({}).has_value());
}

}  // namespace
}  // namespace fleetfit::tune
