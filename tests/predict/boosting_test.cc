#include <gtest/gtest.h>

#include <cmath>

#include "fleetfit/predict/tree_model.h"
#include "predict/regressors/xgboost_training.h"
#include "tests/predict/sets.h"

namespace fleetfit::predict {
namespace {

double two_regimes(std::span<const double> x) {
  return 1 + x[0] * (x[1] < 50 ? 1 : 3) + 0.1 * x[2];
}

std::vector<float> as_floats(std::span<const double> values) {
  return {values.begin(), values.end()};
}

TEST(BoostedTrees, AnswerBitByBitWhatXgboostAnswers) {
  const auto set = test::make_set(300, 3, 1, two_regimes);
  const auto asked = test::make_set(500, 3, 2, two_regimes);
  const auto x = as_floats(set.x);
  const auto y = as_floats(set.y);
  const BoostRows rows{.columns = 3, .x = x, .target = y};
  const BoostSettings settings{.stages = 60, .depth = 5, .base = 7};

  const auto trees = grow_trees(rows, settings);
  const auto expected = answers_of_xgboost(rows, settings, as_floats(asked.x));
  ASSERT_TRUE(trees) << trees.error().message;
  ASSERT_TRUE(expected) << expected.error().message;
  const auto model = TreeModel::build(*trees, {.features = 3, .base = 7}).value();

  EXPECT_EQ(model.trees(), 60U);
  for (std::size_t i = 0; i < 500; ++i)
    ASSERT_EQ(static_cast<float>(model.predict_one(asked.rows().row(i))), (*expected)[i]) << i;
}

class BoostTargets : public testing::TestWithParam<BoostTarget> {};

TEST_P(BoostTargets, LearnALawOfTwoRegimes) {
  const auto set = test::make_set(400, 3, 3, two_regimes);
  core::ThreadPool pool(2);
  const auto fitted = fit_boosted_trees(
      set.view(), core::Random(1), pool,
      {.stages = 100, .depths = {4}, .leaf_penalties = {1}, .subsample = 1, .target = GetParam()});
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_LT(mape_percent(fitted->out_of_fold, set.y), 10);
  const auto fresh = test::make_set(100, 3, 4, two_regimes);
  std::vector<double> out(100);
  fitted->model->predict(fresh.rows(), out);
  EXPECT_LT(mape_percent(out, fresh.y), 10);
}

INSTANTIATE_TEST_SUITE_P(All, BoostTargets,
                         testing::Values(BoostTarget::logarithm, BoostTarget::correction));

TEST(BoostedTrees, AreTheSameOnAnyNumberOfThreads) {
  const auto set = test::make_set(150, 3, 5, two_regimes);
  core::ThreadPool one(1);
  core::ThreadPool three(3);
  const BoostOptions options{.stages = 30, .subsample = 0.7};
  const auto a = fit_boosted_trees(set.view(), core::Random(6), one, options);
  const auto b = fit_boosted_trees(set.view(), core::Random(6), three, options);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->out_of_fold, b->out_of_fold);
  EXPECT_EQ(a->settings, b->settings);
}

TEST(BoostedTrees, ThatCorrectALinearModelGrowWithItBeyondWhatWasSeen) {
  const auto set = test::make_set(300, 1, 7, [](std::span<const double> x) { return 2 * x[0]; });
  core::ThreadPool pool(2);
  const auto fitted = fit_boosted_trees(set.view(), core::Random(1), pool, {.stages = 20});
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(fitted->model->predict_one(std::vector{1000.0}), 2000, 20);
}

}  // namespace
}  // namespace fleetfit::predict
