#include "fleetfit/core/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fleetfit::core {
namespace {

using testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Expected numbers of these two samples come from NumPy 1.24.2 and SciPy 1.10.1.
const std::vector<double> kLatencies = {12.1, 11.8, 13.0, 12.1, 40.5, 11.9, 12.4, 12.1, 12.9, 11.7};
const std::vector<double> kDigits = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};

TEST(Statistics, DescribeASampleAsNumpyDoes) {
  EXPECT_DOUBLE_EQ(mean(kLatencies).value(), 15.05);
  EXPECT_DOUBLE_EQ(median(kLatencies).value(), 12.1);
  EXPECT_NEAR(mad(kLatencies).value(), 0.3, 1e-12);
  EXPECT_NEAR(variance(kLatencies).value(), 80.15166666666666, 1e-12);
  EXPECT_NEAR(stddev(kLatencies).value(), 8.95274631979856, 1e-12);
}

TEST(Statistics, QuantilesInterpolateAsNumpyDoes) {
  EXPECT_DOUBLE_EQ(quantile(kLatencies, 0).value(), 11.7);
  EXPECT_DOUBLE_EQ(quantile(kLatencies, 0.1).value(), 11.79);
  EXPECT_DOUBLE_EQ(quantile(kLatencies, 0.25).value(), 11.95);
  EXPECT_DOUBLE_EQ(quantile(kLatencies, 0.5).value(), 12.1);
  EXPECT_NEAR(quantile(kLatencies, 0.9).value(), 15.75, 1e-12);
  EXPECT_NEAR(quantile(kLatencies, 0.975).value(), 34.3125, 1e-12);
  EXPECT_DOUBLE_EQ(quantile(kLatencies, 1).value(), 40.5);
}

TEST(Statistics, OneValueIsItsOwnMiddle) {
  const std::vector<double> one = {4.5};
  EXPECT_EQ(mean(one).value(), 4.5);
  EXPECT_EQ(median(one).value(), 4.5);
  EXPECT_EQ(mad(one).value(), 0);
  EXPECT_EQ(quantile(one, 0.3).value(), 4.5);
}

TEST(Statistics, TheMedianOfHugeValuesDoesNotOverflow) {
  EXPECT_EQ(median(std::vector{1.7e308, 1.7e308}).value(), 1.7e308);
}

TEST(Statistics, RefuseSamplesTheyAreNotDefinedFor) {
  for (const auto& statistic : {mean, median, mad, variance, stddev}) {
    EXPECT_EQ(statistic({}).error().code, ErrorCode::invalid_input);
    EXPECT_EQ(statistic(std::vector{1.0, kNan, 3.0}).error().code, ErrorCode::invalid_input);
    EXPECT_EQ(statistic(std::vector{1.0, kInfinity}).error().message,
              "value 1 of the sample is inf");
  }
  EXPECT_EQ(variance(std::vector{1.0}).error().message,
            "a sample of 1 values is too small, at least 2 needed");
  EXPECT_FALSE(quantile({}, 0.5));
  EXPECT_FALSE(quantile(kDigits, 1.01));
  EXPECT_FALSE(quantile(kDigits, kNan));
}

TEST(Ranks, ShareTheAverageAmongTies) {
  EXPECT_THAT(ranks(kLatencies).value(), ElementsAre(5, 2, 9, 5, 10, 3, 7, 5, 8, 1));
  EXPECT_THAT(ranks(kDigits).value(), ElementsAre(4.5, 1.5, 6, 1.5, 7.5, 10, 3, 9, 7.5, 4.5));
  EXPECT_THAT(ranks(std::vector{kInfinity, 0.0, -kInfinity}).value(), ElementsAre(3, 2, 1));
  EXPECT_TRUE(ranks({}).value().empty());
  EXPECT_EQ(ranks(std::vector{kNan}).error().code, ErrorCode::invalid_input);
}

TEST(Correlation, AgreesWithScipyOnASmallSampleWithTies) {
  EXPECT_NEAR(pearson(kLatencies, kDigits).value(), 0.16004633410744656, 1e-14);
  EXPECT_NEAR(spearman(kLatencies, kDigits).value(), 0.24767920558904574, 1e-14);
}

// SciPy 1.10.1 on the same formulas.
TEST(Correlation, AgreesWithScipyOnAThousandPairsWithManyTies) {
  std::vector<double> x(1000);
  std::vector<double> y(1000);
  for (int i = 0; i < 1000; ++i) {
    x[i] = i * 7919 % 101;
    y[i] = (i * i * 31 + i * 7919) % 97 + i * 7919 % 101;
  }
  EXPECT_NEAR(spearman(x, y).value(), 0.7314008361262943, 1e-12);
}

TEST(Correlation, IsOneForTheSameOrderAndMinusOneForTheOpposite) {
  const std::vector<double> up = {1, 2, 3, 4, 5};
  const std::vector<double> steep = {1, 10, 100, 1000, kInfinity};
  const std::vector<double> down = {9, 7, 5, 3, 1};
  EXPECT_EQ(spearman(up, steep).value(), 1);
  EXPECT_EQ(spearman(up, down).value(), -1);
}

TEST(Correlation, RefusesPairsItIsNotDefinedFor) {
  const std::vector<double> constant(10, 2.0);
  const std::vector<double> with_nan = {1, 2, kNan, 4, 5, 6, 7, 8, 9, 10};
  for (const auto& correlation : {pearson, spearman}) {
    EXPECT_EQ(correlation(kDigits, std::vector{1.0}).error().message,
              "samples of 10 and 1 values cannot be correlated");
    EXPECT_FALSE(correlation({}, {}));
    EXPECT_FALSE(correlation(kDigits, constant));
    EXPECT_FALSE(correlation(constant, kDigits));
    EXPECT_FALSE(correlation(kDigits, with_nan));
    EXPECT_FALSE(correlation(with_nan, kDigits));
  }
}

}  // namespace
}  // namespace fleetfit::core
