#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fleetfit/predict/tree_model.h"
#include "tests/predict/sets.h"

namespace fleetfit::predict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TreeModel build(std::initializer_list<const char*> texts, const TreeModel::Settings& settings) {
  std::vector<TreeModel::Tree> trees;
  for (const char* text : texts) trees.push_back(parse_tree(text).value());
  return TreeModel::build(trees, settings).value();
}

TEST(TreeModel, GoesLeftWhereAFeatureIsLessThanTheThreshold) {
  const auto model = build({"0<2 =1 1<5 =10 =100"}, {.features = 2});
  EXPECT_EQ(model.predict_one(std::vector{1.9, 9.0}), 1);
  EXPECT_EQ(model.predict_one(std::vector{2.0, 4.0}), 10);
  EXPECT_EQ(model.predict_one(std::vector{2.0, 5.0}), 100);
}

TEST(TreeModel, AddsTreesToTheBase) {
  const auto model =
      build({"0<2 =1 =2", "=4", "0<1 0<0.5 =8 =16 =32"}, {.features = 1, .base = 64});
  EXPECT_EQ(model.predict_one(std::vector{0.0}), 64 + 1 + 4 + 8);
  EXPECT_EQ(model.predict_one(std::vector{0.7}), 64 + 1 + 4 + 16);
  EXPECT_EQ(model.predict_one(std::vector{3.0}), 64 + 2 + 4 + 32);
  EXPECT_THAT(model.staged(std::vector{0.7}), ElementsAre(65, 69, 85));
}

TEST(TreeModel, GivesTheExponentialOfALogarithm) {
  const auto model = build({"=0.5", "=0.25"}, {.features = 1, .link = Link::logarithm, .base = 1});
  EXPECT_DOUBLE_EQ(model.predict_one(std::vector{0.0}), std::exp(1.75));
}

TEST(TreeModel, GivesABatchWhatItGivesRowByRow) {
  const auto model = build({"0<50 1<50 =1 =2 2<50 =3 0<75 =4 =5", "1<20 =10 =20"}, {.features = 3});
  const auto set = test::make_set(201, 3, 1, [](std::span<const double>) { return 1.0; });
  std::vector<double> out(201);
  model.predict(set.rows(), out);
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], model.predict_one(set.rows().row(i)));
}

TEST(TreeModel, TakesNumbersThatAreNone) {
  const auto model = build({"0<2 =1 =2", "0<3 0<1 =4 =8 =16"}, {.features = 1});
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(model.predict_one(std::vector{std::numeric_limits<double>::quiet_NaN()}), 18);
  EXPECT_EQ(model.predict_one(std::vector{infinity}), 18);
  EXPECT_EQ(model.predict_one(std::vector{1e300}), 18);
  EXPECT_EQ(model.predict_one(std::vector{-infinity}), 5);
}

TEST(TreeText, IsReadBackAsItWasWritten) {
  const std::string text = "3<12.5 0<1 =0.25 =-1e-09 =7";
  EXPECT_EQ(format_tree(parse_tree(text).value()), text);
}

TEST(TreeText, RefusesWhatIsNoTree) {
  for (const char* text :
       {"3", "<", "=", "0<1=2 =3", "0<1  =1 =2", "-1<2 =1 =2", "=1 ", "a<1", "=1e999"})
    EXPECT_FALSE(parse_tree(text)) << text;
}

TEST(TreeModel, RefusesTreesThatAreNotWholeOrAskForMissingFeatures) {
  const auto problem = [](const char* text) {
    const std::vector trees = {parse_tree("=1").value(), parse_tree(text).value()};
    const auto model = TreeModel::build(trees, {.features = 2});
    return model ? "" : model.error().message;
  };
  EXPECT_THAT(problem("0<1 =2"), HasSubstr("tree 1: it is not whole"));
  EXPECT_THAT(problem("=1 =2"), HasSubstr("not whole"));
  EXPECT_THAT(problem(""), HasSubstr("not whole"));
  EXPECT_THAT(problem("2<1 =1 =2"), HasSubstr("feature 2"));
  EXPECT_THAT(problem("0<inf =1 =2"), HasSubstr("finite"));
}

TEST(Forest, FollowsAStep) {
  const auto set =
      test::make_set(400, 3, 2, [](std::span<const double> x) { return x[1] < 40 ? 2.0 : 9.0; });
  core::ThreadPool pool(2);
  const auto fitted = fit_forest(set.view(), core::Random(1), pool);
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_LT(mape_percent(fitted->out_of_fold, set.y), 3);
  // Logarithms are added up in floats.
  EXPECT_NEAR(fitted->model->predict_one(std::vector{50.0, 20.0, 50.0}), 2, 2e-6);
  EXPECT_NEAR(fitted->model->predict_one(std::vector{50.0, 60.0, 50.0}), 9, 2e-5);
}

TEST(Forest, IsTheSameOnAnyNumberOfThreads) {
  const auto set =
      test::make_set(200, 3, 3, [](std::span<const double> x) { return x[0] * x[1] + x[2]; });
  core::ThreadPool one(1);
  core::ThreadPool three(3);
  const auto a = fit_forest(set.view(), core::Random(4), one);
  const auto b = fit_forest(set.view(), core::Random(4), three);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->out_of_fold, b->out_of_fold);
  EXPECT_EQ(a->settings, b->settings);
}

// Of 1 and 4 the mean of logarithms is that of 2.
TEST(Forest, AnswersWithTheMeanOfLogarithms) {
  test::OwnedSet set{.columns = 1};
  for (int i = 0; i < 2000; ++i) {
    set.x.push_back(1);
    set.y.push_back(i % 2 == 0 ? 1 : 4);
    set.fold.push_back(i % 5);
  }
  core::ThreadPool pool(1);
  const auto fitted = fit_forest(set.view(), core::Random(1), pool);
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(fitted->model->predict_one(std::vector{1.0}), 2, 0.03);
}

// Times that span four decades, as those of kernels do.
TEST(Forest, IsAsGoodForShortTimesAsForLongOnes) {
  const auto set = test::make_set(
      400, 2, 5, [](std::span<const double> x) { return 1e-4 * std::pow(10, x[0] / 25); });
  core::ThreadPool pool(2);
  const auto fitted = fit_forest(set.view(), core::Random(1), pool);
  ASSERT_TRUE(fitted) << fitted.error().message;
  const auto error_of = [&](bool is_short) {
    std::vector<double> predicted;
    std::vector<double> measured;
    for (std::size_t i = 0; i < set.y.size(); ++i) {
      if ((set.y[i] < 1e-2) != is_short) continue;
      predicted.push_back(fitted->out_of_fold[i]);
      measured.push_back(set.y[i]);
    }
    return mape_percent(predicted, measured);
  };
  EXPECT_LT(error_of(true), 5);
  EXPECT_LT(error_of(false), 5);
}

TEST(Forest, RefusesOptionsThatMakeNoForest) {
  const auto set = test::make_set(20, 1, 1, [](std::span<const double> x) { return x[0]; });
  core::ThreadPool pool(1);
  EXPECT_FALSE(fit_forest(set.view(), core::Random(1), pool, {.trees = 0}));
  EXPECT_FALSE(fit_forest(set.view(), core::Random(1), pool, {.least_child_samples = {}}));
}

}  // namespace
}  // namespace fleetfit::predict
