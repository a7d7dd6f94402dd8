#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "fleetfit/predict/linear_model.h"
#include "tests/predict/sets.h"

namespace fleetfit::predict {
namespace {

using ::testing::HasSubstr;

const LinearModel& linear(const FittedRegressor& fitted) {
  return dynamic_cast<const LinearModel&>(*fitted.model);
}

TEST(Lasso, FindsALinearLawWithoutNoise) {
  const auto set = test::make_set(200, 4, 1, [](std::span<const double> x) {
    return 0.5 + 0.02 * x[0] + 0.3 * x[2];  // features 1 and 3 cost nothing
  });

  const auto fitted =
      fit_lasso(set.view(), {.lowest_alpha = 1e-9, .highest_alpha = 1e-9, .alphas = 1});

  ASSERT_TRUE(fitted) << fitted.error().message;
  const auto& model = linear(*fitted);
  EXPECT_NEAR(model.intercept(), 0.5, 1e-5);
  EXPECT_NEAR(model.weights()[0], 0.02, 1e-6);
  EXPECT_NEAR(model.weights()[1], 0, 1e-7);
  EXPECT_NEAR(model.weights()[2], 0.3, 1e-6);
  EXPECT_NEAR(model.weights()[3], 0, 1e-7);
}

TEST(Lasso, ChoosesAWeakPenaltyWhereTheLawIsExact) {
  const auto set =
      test::make_set(200, 3, 2, [](std::span<const double> x) { return 1 + x[0] + 0.1 * x[1]; });

  const auto fitted = fit_lasso(set.view());

  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->settings, "alpha 1e-05");
  EXPECT_LT(mape_percent(fitted->out_of_fold, set.y), 0.01);
}

// With one feature that is y itself and no intercept the minimum of mean((w - 1)^2) + alpha w s is
// at w = 1 - alpha s / 2, where s is the scale between the penalized weight and w.
TEST(Lasso, ShrinksByHalfOfThePenalty) {
  test::OwnedSet set{.columns = 1};
  for (const double y : {1.0, 3.0}) {
    set.x.push_back(y);
    set.y.push_back(y);
    set.fold.push_back(0);
  }
  set.x.insert(set.x.end(), {1, 3});
  set.y.insert(set.y.end(), {1, 3});
  set.fold.insert(set.fold.end(), {1, 1});
  auto view = set.view();
  view.folds = 2;

  const auto fitted = fit_lasso(view, {.lowest_alpha = 0.1, .highest_alpha = 0.1, .alphas = 1});

  // x has deviation 1 and y median 2: the penalized weight is w / 2. Intercept b (in medians) and
  // weight v solve the two equations of a stationary point: z = (x/y', 1/y') = (2, 2/y).
  // G = [[4, mean(4/y)], [mean(4/y), mean(4/y^2)]], c = [2, mean(2/y)]; the penalty takes 0.05 off
  // c[0]. mean(1/y) = 2/3, mean(1/y^2) = 5/9.
  const double g11 = 4;
  const double g12 = 4 * 2.0 / 3;
  const double g22 = 4 * 5.0 / 9;
  const double c1 = 2 - 0.05;
  const double c2 = 2 * 2.0 / 3;
  const double determinant = g11 * g22 - g12 * g12;
  const double v = (c1 * g22 - c2 * g12) / determinant;
  const double b = (g11 * c2 - g12 * c1) / determinant;
  ASSERT_GT(b, 0);
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(linear(*fitted).weights()[0], v * 2, 1e-8);
  EXPECT_NEAR(linear(*fitted).intercept(), b * 2, 1e-8);
}

TEST(Lasso, GivesNoNegativeWeightToAFeatureThatMakesThingsCheaper) {
  const auto set =
      test::make_set(300, 2, 3, [](std::span<const double> x) { return 10 + x[0] - 0.05 * x[1]; });

  const auto fitted = fit_lasso(set.view());

  ASSERT_TRUE(fitted);
  EXPECT_EQ(linear(*fitted).weights()[1], 0);
  EXPECT_GE(linear(*fitted).intercept(), 0);
}

TEST(Lasso, TakesAFeatureThatNeverChanges) {
  auto set = test::make_set(50, 2, 4, [](std::span<const double> x) { return 3 * x[0]; });
  for (std::size_t i = 1; i < set.x.size(); i += 2) set.x[i] = 7;

  const auto fitted = fit_lasso(set.view());

  ASSERT_TRUE(fitted);
  EXPECT_NEAR(linear(*fitted).weights()[0], 3, 1e-3);
  EXPECT_EQ(linear(*fitted).weights()[1], 0);
}

TEST(Lasso, NamesTheRowOfATimeThatIsNone) {
  auto set = test::make_set(20, 1, 5, [](std::span<const double> x) { return x[0]; });
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    set.y[7] = bad;
    const auto fitted = fit_lasso(set.view());
    ASSERT_FALSE(fitted);
    EXPECT_EQ(fitted.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(fitted.error().message, HasSubstr("row 7"));
  }
}

TEST(Lasso, RefusesASetWhosePartsDoNotFitTogether) {
  auto set = test::make_set(20, 2, 6, [](std::span<const double> x) { return x[0]; });
  set.x.pop_back();
  EXPECT_FALSE(fit_lasso(set.view()));
  EXPECT_FALSE(fit_lasso({}));
}

TEST(Importance, GoesToTheFeatureThatMatters) {
  const auto set = test::make_set(200, 3, 7, [](std::span<const double> x) { return x[0]; });
  const LinearModel model(0, {0, 2, 0});
  const auto shares = importance(model, set.rows(), core::Random(1));
  EXPECT_EQ(shares, (std::vector<double>{0, 1, 0}));
}

}  // namespace
}  // namespace fleetfit::predict
