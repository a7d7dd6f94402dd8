#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tune/samplers/archive.h"
#include "tune/samplers/density.h"

namespace fleetfit::tune {
namespace {

Parameter range(const std::string& name, double low, double high) {
  return {.name = name, .low = low, .high = high};
}

Parameter letters(const std::string& name, int count) {
  Parameter parameter{.name = name};
  for (int i = 0; i < count; ++i)
    parameter.values.emplace_back(std::string(1, static_cast<char>('a' + i)));
  return parameter;
}

TEST(Axes, GiveEveryWholeNumberACellOfItsOwn) {
  Parameter whole = range("n", 1, 4);
  whole.integer = true;
  const auto parameters = Parameters::create({whole}).value();
  const Axes axes(parameters);
  EXPECT_DOUBLE_EQ(axes.to_place(0, 1), 0.125);
  EXPECT_DOUBLE_EQ(axes.to_place(0, 4), 0.875);
  EXPECT_DOUBLE_EQ(axes[0].step, 0.25);
  EXPECT_EQ(axes.from_place(0, 0.24), 1);
  EXPECT_EQ(axes.from_place(0, 0.26), 2);
  EXPECT_EQ(axes.from_place(0, 1), 4);
}

TEST(Axes, StretchLogarithms) {
  Parameter rate = range("rate", 1e-4, 1);
  rate.log = true;
  const auto parameters = Parameters::create({rate}).value();
  const Axes axes(parameters);
  EXPECT_NEAR(axes.to_place(0, 1e-3), 0.25, 1e-12);
  EXPECT_NEAR(axes.from_place(0, 0.5), 1e-2, 1e-12);
}

TEST(Density, HasAnIntegralOfOne) {
  const auto parameters = Parameters::create({range("x", 0, 1), letters("c", 3)}).value();
  const Axes axes(parameters);
  Density density(axes);
  density.add(Point{0.1, 0}, Point{0.2, 0.3}, 2);
  density.add(Point{0.9, 2}, Point{0.05, 0.9}, 1);
  density.add_uniform(0.5);
  double sum = 0;
  constexpr int kSteps = 2000;
  for (int i = 0; i < kSteps; ++i) {
    for (const double c : {0.0, 1.0, 2.0}) {
      sum += std::exp(density.log_density(Point{(i + 0.5) / kSteps, c})) / (3.0 * kSteps);
    }
  }
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(Density, IsUniformWhereAKernelHasNoPlace) {
  const auto parameters = Parameters::create({range("x", 0, 1), range("y", 0, 1)}).value();
  const Axes axes(parameters);
  Density density(axes);
  density.add(Point{0.5, kInactive}, Point{0.1, 1}, 1);
  const double there = density.log_density(Point{0.45, 0.2});
  EXPECT_DOUBLE_EQ(there, density.log_density(Point{0.45, 0.9}));
  EXPECT_DOUBLE_EQ(there, density.log_density(Point{0.45, kInactive}));
  // A normal distribution with a deviation of 0.1, half a deviation off.
  EXPECT_NEAR(std::exp(there), 3.9894 * std::exp(-0.125), 1e-3);
}

TEST(Density, DrawsAsOftenAsItIsDense) {
  const auto parameters = Parameters::create({range("x", 0, 1), letters("c", 2)}).value();
  const Axes axes(parameters);
  Density density(axes);
  density.add(Point{0.0, 0}, Point{0.1, 0.2}, 3);
  density.add_uniform(1);
  core::Random random(1);
  int near = 0;
  int same = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Candidate drawn = density.sample(random);
    if (drawn.point[0] < 0.1) ++near;
    if (drawn.point[1] == 0) ++same;
  }
  // Of half a normal distribution 68.27 % lie within one deviation.
  EXPECT_NEAR(near / 20'000.0, 0.75 * 0.6827 + 0.25 * 0.1, 0.015);
  EXPECT_NEAR(same / 20'000.0, 0.75 * 0.9 + 0.25 * 0.5, 0.015);
}

Observation observation(std::size_t number, std::vector<double> values, double violation = 0) {
  return {.trial = number,
          .point = {static_cast<double>(number)},
          .values = std::move(values),
          .violation = violation};
}

TEST(Archive, KeepsTheBestOfMany) {
  Archive archive(1, {.best = 20, .others = 50});
  core::Random random(1);
  std::vector<double> values;
  for (std::size_t i = 0; i < 5'000; ++i) {
    values.push_back(random.uniform());
    archive.tell(observation(i, {values.back()}));
  }
  std::sort(values.begin(), values.end());
  ASSERT_EQ(archive.best().size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(archive.best()[i].values[0], values[i]);
  EXPECT_EQ(archive.count(), 5'000u);
  EXPECT_EQ(archive.others().size(), 50u);
  EXPECT_DOUBLE_EQ(archive.weight_of_others(), 4'980 / 50.0);
}

TEST(Archive, SamplesTheOthersEvenly) {
  Archive archive(1, {.best = 1, .others = 200});
  for (std::size_t i = 0; i < 20'000; ++i) archive.tell(observation(i, {static_cast<double>(i)}));
  std::array<int, 4> quarters = {};
  for (const Kept& kept : archive.others())
    ++quarters[static_cast<std::size_t>(kept.values[0]) / 5'000];
  for (const int count : quarters) EXPECT_NEAR(count, 50, 25);
}

TEST(Archive, PutsWhatBreaksALimitLastTheWorseTheLater) {
  for (const std::size_t objectives : {1, 2}) {
    Archive archive(objectives, {.best = 8, .others = 8});
    const auto tell = [&](std::size_t number, double value, double violation) {
      archive.tell(observation(number, std::vector<double>(objectives, value), violation));
    };
    tell(0, 1, 0.5);
    tell(1, 7, 0);
    tell(2, 2, 0.1);
    tell(3, 9, 0);
    std::vector<double> order;
    for (const Kept& kept : archive.best()) order.push_back(kept.point[0]);
    EXPECT_EQ(order, (std::vector<double>{1, 3, 2, 0})) << objectives;
  }
}

TEST(Archive, RanksByFrontAndThenByTheVolumeThatOneAdds) {
  std::vector<Kept> all;
  const auto add = [&](double a, double b) {
    all.push_back(
        {.point = {static_cast<double>(all.size())}, .values = {a, b}, .trial = all.size()});
  };
  add(5, 5);      // 0: dominated by 3
  add(0, 10);     // 1: the first front from here on
  add(10, 0);     // 2
  add(4, 4);      // 3: in the middle of the front, by far the most volume
  add(4.1, 3.9);  // 4: next to it, adds hardly anything
  rank_best_first(all, 2);
  EXPECT_EQ(all.front().point[0], 3);
  EXPECT_EQ(all[3].point[0], 4);
  EXPECT_EQ(all.back().point[0], 0);
}

TEST(Archive, KeepsTheWholeFrontOfMany) {
  for (const std::size_t objectives : {2, 3, 5}) {
    Archive archive(objectives, {.best = 16, .others = 16});
    std::set<double> front;
    core::Random random(objectives);
    for (std::size_t i = 0; i < 400; ++i) {
      std::vector<double> values(objectives);
      double sum = 0;
      for (double& value : values) sum += value = random.uniform();
      const bool on_front = i % 50 == 0;  // on a plane that all others lie behind
      for (double& value : values)
        value += (on_front ? 1 : 3) - sum / static_cast<double>(objectives);
      if (on_front) front.insert(static_cast<double>(i));
      archive.tell(observation(i, values));
    }
    std::set<double> best;
    for (std::size_t i = 0; i < front.size(); ++i) best.insert(archive.best()[i].point[0]);
    EXPECT_EQ(best, front) << objectives;
  }
}

TEST(Fingerprint, IsTheSameForTheSamePoint) {
  EXPECT_EQ(fingerprint({0.0, kInactive}), fingerprint({-0.0, -kInactive}));
  EXPECT_NE(fingerprint({0.0, 1.0}), fingerprint({1.0, 0.0}));
}

}  // namespace
}  // namespace fleetfit::tune
