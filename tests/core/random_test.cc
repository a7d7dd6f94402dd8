#include "fleetfit/core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace fleetfit::core {
namespace {

// The published test values of splitmix64 for the seed 1234567 (Rosetta Code, "Splitmix64").
TEST(Mix, GivesThePublishedValuesOfSplitmix64) {
  EXPECT_EQ(mix(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(mix(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(mix(1234567, 2), 9817491932198370423u);
  EXPECT_EQ(mix(1234567, 3), 4593380528125082431u);
  EXPECT_EQ(mix(1234567, 4), 16408922859458223821u);
}

// Computed by a transcription of the xoshiro256** reference code in Python, seeded by splitmix64.
TEST(Random, GivesTheValuesOfXoshiro256StarStar) {
  Random zero(0);
  EXPECT_EQ(zero.next(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(zero.next(), 0xbf6e1f784956452au);
  EXPECT_EQ(zero.next(), 0x1a5f849d4933e6e0u);
  EXPECT_EQ(zero.next(), 0x6aa594f1262d2d2cu);
  Random other(42);
  EXPECT_EQ(other.next(), 0x15780b2e0c2ec716u);
}

// Marsaglia's polar method on the same stream in Python, with the logarithm of the C library.
TEST(Random, NormalAgreesWithThePolarMethod) {
  Random random(7);
  EXPECT_NEAR(random.normal(), 0.9643618527255184, 1e-14);
  EXPECT_NEAR(random.normal(), -0.3039301238656567, 1e-14);
  EXPECT_NEAR(random.normal(), 0.30479435832638674, 1e-14);
  EXPECT_NEAR(random.normal(), -1.7010190714940672, 1e-14);
}

TEST(Random, NormalHasTheMomentsAndTailsOfANormalDistribution) {
  Random random(3);
  constexpr int kDraws = 200'000;
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
    if (std::abs(value) > 2) ++beyond_two;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, 0.0455, 0.003);  // 2 (1 - Phi(2))
}

TEST(Random, BelowIsUniform) {
  Random random(1);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70'000;
  for (int i = 0; i < kDraws; ++i) ++counts[random.below(7)];
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - 10'000.0, 2) / 10'000.0;
  EXPECT_LT(chi_square, 22.46);  // 99.9 % quantile of the chi-square distribution with 6 degrees
}

// Taking the remainder of 64 bits would put two thirds of the draws into the lower half.
TEST(Random, BelowHasNoBiasForHugeBounds) {
  Random random(2);
  const std::uint64_t bound = 3u * (std::uint64_t{1} << 62);
  int lower_half = 0;
  for (int i = 0; i < 20'000; ++i) lower_half += random.below(bound) < bound / 2;
  EXPECT_NEAR(lower_half, 10'000, 300);
}

TEST(Random, BetweenCoversBothEndsAndTheWholeRange) {
  Random random(4);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.between(-2, 2));
  EXPECT_THAT(seen, testing::ElementsAre(-2, -1, 0, 1, 2));
  EXPECT_EQ(random.between(5, 5), 5);
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_NE(random.between(Limits::min(), Limits::max()),
            random.between(Limits::min(), Limits::max()));
}

TEST(Random, UniformStaysBelowOneAndHasMeanOneHalf) {
  EXPECT_EQ(unit_interval(0), 0.0);
  EXPECT_LT(unit_interval(~std::uint64_t{0}), 1.0);
  Random random(5);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += random.uniform();
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(Random, SplitDoesNotDependOnDrawsNorOnTheOrderOfSplits) {
  Random fresh(9);
  Random used(9);
  for (int i = 0; i < 17; ++i) used.next();
  Random late = used.split(3);
  used.split(1);
  EXPECT_EQ(fresh.split(3).next(), late.next());
  EXPECT_EQ(fresh.split("trial").next(), used.split("trial").next());
}

TEST(Random, ChildrenOfDifferentKeysAndParentsDiffer) {
  const Random parent(0);
  std::set<std::uint64_t> firsts = {Random(0).next(), Random(1).next()};
  for (std::uint64_t key = 0; key < 1000; ++key) {
    firsts.insert(parent.split(key).next());
    firsts.insert(Random(1).split(key).next());
    firsts.insert(parent.split(std::to_string(key)).next());
    firsts.insert(parent.split(0).split(key).next());
  }
  EXPECT_EQ(firsts.size(), 4002u);
}

TEST(Random, NeighbouringChildrenAreUncorrelated) {
  const Random parent(11);
  double sum = 0;
  constexpr int kPairs = 20'000;
  for (std::uint64_t key = 0; key < kPairs; ++key) {
    sum += (parent.split(key).uniform() - 0.5) * (parent.split(key + 1).uniform() - 0.5);
  }
  EXPECT_NEAR(12 * sum / kPairs, 0, 0.03);
}

TEST(Random, ShuffleGivesEveryOrderEquallyOften) {
  Random random(6);
  std::map<std::vector<int>, int> counts;
  for (int i = 0; i < 24'000; ++i) {
    std::vector<int> items = {1, 2, 3, 4};
    random.shuffle(items);
    ++counts[items];
  }
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(Random, SampleGivesDifferentNumbersOfTheWholePopulation) {
  Random random(8);
  auto everything = random.sample(50, 50);
  std::ranges::sort(everything);
  std::vector<std::uint64_t> expected(50);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(everything, expected);
  EXPECT_TRUE(random.sample(0, 0).empty());

  const auto few = random.sample(std::uint64_t{1} << 63, 1000);
  EXPECT_EQ(std::set(few.begin(), few.end()).size(), 1000u);
}

TEST(Random, SampleChoosesEachMemberEquallyOften) {
  Random random(10);
  std::array<int, 10> counts{};
  for (int i = 0; i < 10'000; ++i) {
    for (const auto member : random.sample(10, 3)) ++counts[member];
  }
  for (const int count : counts) EXPECT_NEAR(count, 3000, 200);
}

}  // namespace
}  // namespace fleetfit::core
