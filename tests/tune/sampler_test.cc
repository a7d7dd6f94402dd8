#include "fleetfit/tune/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/core/statistics.h"
#include "fleetfit/search/pareto.h"

namespace fleetfit::tune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Parameter range(const std::string& name, double low, double high) {
  return {.name = name, .low = low, .high = high};
}

Parameter choice(const std::string& name, int count) {
  Parameter parameter{.name = name};
  for (int i = 0; i < count; ++i) parameter.values.emplace_back(std::string(1, char('a' + i)));
  return parameter;
}

Parameter only_when(Parameter parameter, std::size_t other, std::vector<std::size_t> choices) {
  parameter.when = Parameter::Condition{.parameter = other, .choices = std::move(choices)};
  return parameter;
}

/// A choice, a logarithmic number and a whole one that depend on it, and an ordered choice.
Parameters mixed() {
  Parameter rate = range("rate", 1e-5, 1);
  rate.log = true;
  Parameter width = range("width", 1, 20);
  width.integer = true;
  Parameter batch{.name = "batch"};
  for (const std::int64_t size : {8, 16, 32, 64}) batch.values.emplace_back(size);
  batch.ordered = true;
  return Parameters::create(
             {choice("optimizer", 3), only_when(rate, 0, {0, 2}), only_when(width, 0, {1}), batch})
      .value();
}

Parameters unit_square() {
  return Parameters::create({range("x", 0, 1), range("y", 0, 1)}).value();
}

/// Told back at once.
std::vector<Observation> optimize(const Parameters& parameters, const SamplerOptions& options,
                                  std::size_t trials, std::uint64_t seed,
                                  const std::function<void(Observation&)>& evaluate) {
  const auto sampler = make_sampler(parameters, options);
  const core::Random root(seed);
  std::vector<Observation> all;
  for (std::size_t trial = 0; trial < trials; ++trial) {
    core::Random random = root.split(trial);
    Observation observation{.trial = trial, .point = sampler->suggest(trial, {}, random)};
    evaluate(observation);
    sampler->tell(observation);
    all.push_back(std::move(observation));
  }
  return all;
}

void expect_valid(const Parameters& parameters, const Point& point) {
  ASSERT_EQ(point.size(), parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters.all()[i];
    if (!parameters.is_active(point, i)) {
      EXPECT_TRUE(std::isnan(point[i])) << parameter.name;
      continue;
    }
    const double high =
        parameter.is_choice() ? static_cast<double>(parameter.values.size()) - 1 : parameter.high;
    EXPECT_GE(point[i], parameter.is_choice() ? 0 : parameter.low) << parameter.name;
    EXPECT_LE(point[i], high) << parameter.name;
    if (parameter.is_choice() || parameter.integer) {
      EXPECT_EQ(point[i], std::round(point[i])) << parameter.name;
    }
  }
}

class EverySampler : public testing::TestWithParam<SamplerKind> {};

TEST_P(EverySampler, SuggestsValidPointsOfMixedAndConditionalParameters) {
  const Parameters parameters = mixed();
  const auto value = [](Observation& o) {
    o.values = {std::abs(o.point[0] - 1) + (std::isnan(o.point[2]) ? 1 : o.point[2] / 20)};
  };
  for (const Observation& observation : optimize(parameters, {.kind = GetParam()}, 120, 3, value)) {
    expect_valid(parameters, observation.point);
  }
}

TEST_P(EverySampler, SuggestsTheSameAfterTheSameHistory) {
  const Parameters parameters = mixed();
  const auto value = [](Observation& o) { o.values = {o.point[0] + o.point[3]}; };
  const auto history = optimize(parameters, {.kind = GetParam()}, 80, 5, value);
  const auto successor = make_sampler(parameters, {.kind = GetParam()});
  for (const Observation& observation : history) successor->tell(observation);

  // One that suggested all of it, and one that was only told it.
  const auto again = optimize(parameters, {.kind = GetParam()}, 81, 5, value);
  core::Random random = core::Random(5).split(80);
  EXPECT_TRUE(same_point(successor->suggest(80, {}, random), again[80].point));
}

TEST_P(EverySampler, TakesValuesThatAreInfiniteMissingOrNotNumbers) {
  const Parameters parameters = unit_square();
  const auto value = [](Observation& o) {
    if (o.trial % 4 == 0) o.values = {kInfinity, 1};
    if (o.trial % 4 == 1) o.values = {std::nan(""), -kInfinity};
    if (o.trial % 4 == 2) o.violation = kInfinity;
    if (o.trial % 4 == 3) o.values = {1, 2};
  };
  for (const Observation& observation :
       optimize(parameters, {.kind = GetParam(), .objectives = 2}, 150, 1, value)) {
    expect_valid(parameters, observation.point);
  }
}

TEST_P(EverySampler, TakesAnEmptySetOfParametersAndRangesOfOneValue) {
  const auto value = [](Observation& o) { o.values = {1}; };
  const auto none = Parameters::create({}).value();
  EXPECT_TRUE(optimize(none, {.kind = GetParam()}, 30, 1, value).back().point.empty());
  Parameter whole = range("one", 3, 3);
  whole.integer = true;
  const auto one = Parameters::create({whole, choice("only", 1)});
  if (!one) GTEST_SKIP() << "parameters refuse ranges of one value";
  EXPECT_EQ(optimize(*one, {.kind = GetParam()}, 30, 1, value).back().point, (Point{3, 0}));
}

INSTANTIATE_TEST_SUITE_P(Samplers, EverySampler,
                         testing::Values(SamplerKind::random, SamplerKind::grid, SamplerKind::tpe,
                                         SamplerKind::bohb, SamplerKind::nsga2));

/// Those that learn from what they are told.
class LearningSampler : public testing::TestWithParam<SamplerKind> {};

TEST_P(LearningSampler, IsBetterThanChance) {
  const Parameters parameters = mixed();
  // The best is 0: optimizer c, a rate of 0.001, a batch of 32.
  const auto value = [](Observation& o) {
    const double rate = std::isnan(o.point[1]) ? 2 : std::abs(std::log10(o.point[1]) + 3);
    o.values = {(o.point[0] == 2 ? 0 : 1) + rate + 0.2 * std::abs(o.point[3] - 2)};
  };
  const auto median = [&](SamplerKind kind) {
    std::vector<double> bests;
    for (std::uint64_t seed = 0; seed < 7; ++seed) {
      double best = kInfinity;
      for (const auto& o : optimize(parameters, {.kind = kind}, 150, seed, value)) {
        best = std::min(best, o.values[0]);
      }
      bests.push_back(best);
    }
    std::sort(bests.begin(), bests.end());
    return bests[3];
  };
  EXPECT_LT(median(GetParam()), 0.5 * median(SamplerKind::random));
}

TEST_P(LearningSampler, DominatesMoreThanChanceWithTwoObjectives) {
  const auto parameters =
      Parameters::create({range("x", 0, 1), range("y", 0, 1), range("z", 0, 1)}).value();
  // The Pareto set is y = z = 0.3, with a front from (0, 1) to (1, 0).
  const auto value = [](Observation& o) {
    const double away = 5 * (std::abs(o.point[1] - 0.3) + std::abs(o.point[2] - 0.3));
    o.values = {o.point[0] + away, 1 - std::sqrt(o.point[0]) + away};
  };
  const auto volume = [&](SamplerKind kind) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      std::vector<double> values;
      for (const auto& o :
           optimize(parameters, {.kind = kind, .objectives = 2}, 150, seed, value)) {
        values.insert(values.end(), o.values.begin(), o.values.end());
      }
      sum += search::hypervolume({values, 2}, std::vector<double>{2, 2}).value();
    }
    return sum;
  };
  EXPECT_GT(volume(GetParam()), 1.1 * volume(SamplerKind::random));
}

TEST_P(LearningSampler, StaysWhereNoLimitIsBroken) {
  // Values fall towards x = 1, but above 0.3 a limit is broken, the more the further.
  const auto value = [](Observation& o) {
    o.values = {-o.point[0]};
    o.violation = std::max(0.0, o.point[0] - 0.3);
  };
  const auto all = optimize(unit_square(), {.kind = GetParam()}, 160, 2, value);
  const auto kept = std::count_if(all.begin() + 80, all.end(),
                                  [](const Observation& o) { return o.violation == 0; });
  // By chance it would be 24 of 80.
  EXPECT_GT(kept, 40);
}

TEST_P(LearningSampler, SuggestsNoPointTwiceWhileOthersAreLeft) {
  const auto parameters =
      Parameters::create({choice("a", 5), choice("b", 5), choice("c", 5)}).value();
  std::set<Point> seen;
  const auto value = [&](Observation& o) {
    seen.insert(o.point);
    o.values = {o.point[0] + o.point[1] + o.point[2]};
  };
  optimize(parameters, {.kind = GetParam()}, 110, 1, value);
  // Only what is drawn at random, at first or as a part of BOHB, meets earlier ones; by chance
  // alone 73 different ones are expected.
  EXPECT_GT(seen.size(), 85u);
}

TEST_P(LearningSampler, KeepsAwayFromPendingPoints) {
  const auto parameters = Parameters::create({choice("a", 3), choice("b", 3)}).value();
  const auto sampler = make_sampler(parameters, {.kind = GetParam()});
  for (std::size_t i = 0; i < 60; ++i) {
    const double a = static_cast<double>(i % 2);
    sampler->tell({.trial = i, .point = {a, 0}, .values = {a}});
  }
  const std::vector<Point> pending = {{0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 0}, {2, 1}};
  int last = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    core::Random random(seed);
    if (sampler->suggest(60, pending, random) == Point{2, 2}) ++last;
  }
  // The one point that is left; 7 of 60 by chance.
  EXPECT_GT(last, 30);
}

INSTANTIATE_TEST_SUITE_P(Samplers, LearningSampler,
                         testing::Values(SamplerKind::tpe, SamplerKind::bohb, SamplerKind::nsga2));

TEST(GridSampler, GoesThroughEveryPointOnce) {
  // 3 values of `a`; x (10 cuts) only with a = 1, y (whole, 4 values) only with a = 2: 1 + 10 + 4,
  // times 2 values of `b`.
  Parameter whole = range("y", 5, 8);
  whole.integer = true;
  const auto parameters = Parameters::create({choice("a", 3), only_when(range("x", 0, 9), 0, {1}),
                                              only_when(whole, 0, {2}), choice("b", 2)})
                              .value();
  const auto sampler = make_sampler(parameters, {.kind = SamplerKind::grid});
  core::Random random(1);
  std::set<std::string> keys;
  for (std::size_t trial = 0; trial < 30; ++trial) {
    const Point point = sampler->suggest(trial, {}, random);
    expect_valid(parameters, point);
    if (point[0] == 1) EXPECT_NEAR(point[1], std::round(point[1]), 1e-9);
    keys.insert(parameters.key(point, Group::training));
  }
  EXPECT_EQ(keys.size(), 30u);
  // The grid is used up: what comes now lies anywhere.
  bool off_grid = false;
  for (std::size_t trial = 30; trial < 60; ++trial) {
    const Point point = sampler->suggest(trial, {}, random);
    off_grid |= point[0] == 1 && point[1] != std::round(point[1]);
  }
  EXPECT_TRUE(off_grid);
}

TEST(GridSampler, CoversTheWholeRangeEarly) {
  const auto parameters = Parameters::create({range("x", 0, 9)}).value();
  const auto sampler = make_sampler(parameters, {.kind = SamplerKind::grid});
  core::Random random(1);
  std::set<double> first = {-1, 10};
  for (std::size_t trial = 0; trial < 5; ++trial)
    first.insert(sampler->suggest(trial, {}, random)[0]);
  // Half of the points, and nowhere a gap of more than three.
  for (auto next = std::next(first.begin()); next != first.end(); ++next) {
    EXPECT_LE(*next - *std::prev(next), 3 + 1e-9);
  }
}

TEST(GridSampler, DrawsFromTheGridWhereItIsTooLargeToGoThrough) {
  std::vector<Parameter> many;
  for (int i = 0; i < 40; ++i) many.push_back(range("p" + std::to_string(i), 0, 9));
  const auto parameters = Parameters::create(std::move(many)).value();
  const auto sampler = make_sampler(parameters, {.kind = SamplerKind::grid});
  core::Random random(1);
  const Point one = sampler->suggest(0, {}, random);
  const Point other = sampler->suggest(1, {}, random);
  EXPECT_NE(one, other);
  for (const double value : one) EXPECT_NEAR(value, std::round(value), 1e-9);
}

/// How often it suggests an x near the given one.
int suggestions_near(Sampler& sampler, double x) {
  int near = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    core::Random random(seed);
    if (std::abs(sampler.suggest(100, {}, random)[0] - x) < 0.15) ++near;
  }
  return near;
}

/// Observations at a level whose best x is the given one.
void tell_level(Sampler& sampler, std::size_t level, double best, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double x = std::fmod(0.618034 * static_cast<double>(i + 1), 1.0);
    sampler.tell({.trial = i, .point = {x, 0.5}, .level = level, .values = {std::abs(x - best)}});
  }
}

class LevelSampler : public testing::TestWithParam<SamplerKind> {};

TEST_P(LevelSampler, BelievesTheHighestLevelThatHasEnoughObservations) {
  const Parameters parameters = unit_square();
  const auto sampler = make_sampler(parameters, {.kind = GetParam(), .levels = 3});
  tell_level(*sampler, 0, 0.2, 60);
  EXPECT_GT(suggestions_near(*sampler, 0.2), 30);
  tell_level(*sampler, 1, 0.8, 3);  // too few
  EXPECT_GT(suggestions_near(*sampler, 0.2), 30);
  tell_level(*sampler, 1, 0.8, 40);
  EXPECT_GT(suggestions_near(*sampler, 0.8), 30);
}

INSTANTIATE_TEST_SUITE_P(Samplers, LevelSampler,
                         testing::Values(SamplerKind::tpe, SamplerKind::bohb));

TEST(BohbSampler, DrawsAThirdAtRandom) {
  const Parameters parameters = unit_square();
  const auto sampler = make_sampler(parameters, {.kind = SamplerKind::bohb});
  tell_level(*sampler, 0, 0.1, 200);
  int far = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    core::Random random(seed);
    if (sampler->suggest(200, {}, random)[0] > 0.6) ++far;
  }
  // The model has no reason to be there: 0.4 of a third.
  EXPECT_NEAR(far, 80, 30);
}

}  // namespace
}  // namespace fleetfit::tune
