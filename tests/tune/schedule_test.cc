#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fleetfit/core/random.h"
#include "tune/observation_queue.h"
#include "tune/scheduler.h"

namespace fleetfit::tune {
namespace {

using testing::ElementsAre;

TEST(Ranking, OfOneObjectivePutsWhatBreaksLimitsLast) {
  const std::vector<Standing> standings = {{.trial = 0, .values = {3}},
                                           {.trial = 1, .values = {1}, .violation = 0.5},
                                           {.trial = 2, .values = {2}},
                                           {.trial = 3, .values = {9}, .violation = 0.1},
                                           {.trial = 4, .values = {2}}};
  EXPECT_THAT(ranking(standings), ElementsAre(2, 4, 0, 3, 1));
}

TEST(Ranking, OfTwoObjectivesGoesByParetoSetsAndThenByLoneliness) {
  // 0, 1, 2 and 3 dominate 4; 1 lies near 0, 2 lies alone.
  const std::vector<Standing> standings = {
      {.trial = 0, .values = {0, 10}},  {.trial = 1, .values = {1, 9}},
      {.trial = 2, .values = {6, 4}},   {.trial = 3, .values = {10, 0}},
      {.trial = 4, .values = {11, 11}}, {.trial = 5, .values = {-5, -5}, .violation = 1}};
  EXPECT_THAT(ranking(standings), ElementsAre(0, 3, 2, 1, 4, 5));
}

TEST(Ranking, DoesNotDependOnTheOrderOfItsInput) {
  core::Random random(3);
  std::vector<Standing> standings;
  for (std::size_t i = 0; i < 60; ++i) {
    const auto number = [&] { return static_cast<double>(random.below(6)); };
    standings.push_back({.trial = i, .values = {number(), number()}});
  }
  const auto trials = [](const std::vector<Standing>& of) {
    std::vector<std::size_t> numbers;
    for (const std::size_t i : ranking(of)) numbers.push_back(of[i].trial);
    return numbers;
  };
  const auto expected = trials(standings);
  random.shuffle(standings);
  EXPECT_EQ(trials(standings), expected);
}

/// The rule itself: the best that waits, if it is among the best 1/eta of all.
std::optional<std::size_t> promotable_by_sorting(const std::vector<Standing>& all,
                                                 const std::set<std::size_t>& waiting, double eta) {
  const auto order = ranking(all);
  const auto places = static_cast<std::size_t>(static_cast<double>(all.size()) / eta);
  for (std::size_t i = 0; i < places; ++i) {
    if (waiting.contains(all[order[i]].trial)) return all[order[i]].trial;
  }
  return std::nullopt;
}

void compare_with_sorting(AsyncRung& rung, std::size_t objectives, double eta) {
  core::Random random(9);
  std::vector<Standing> all;
  std::set<std::size_t> waiting;
  for (std::size_t i = 0; i < 200; ++i) {
    Standing standing = {.trial = i, .violation = random.chance(0.2) ? random.uniform() : 0};
    for (std::size_t o = 0; o < objectives; ++o) {
      standing.values.push_back(static_cast<double>(random.below(50)));
    }
    all.push_back(standing);
    rung.add(standing);
    rung.wait(i);
    waiting.insert(i);
    while (true) {
      const auto expected = promotable_by_sorting(all, waiting, eta);
      ASSERT_EQ(rung.promotable(), expected) << "of " << i + 1;
      if (!expected || random.chance(0.3)) break;
      rung.leave(*expected);
      waiting.erase(*expected);
    }
  }
}

TEST(AsyncRung, SortedIsTheSameAsSortingEverythingAnew) {
  const auto rung = make_sorted_rung(3);
  compare_with_sorting(*rung, 1, 3);
}

TEST(AsyncRung, OneCohortOfSeveralObjectivesIsTheSameAsSortingEverythingAnew) {
  const auto rung = make_cohort_rung(2, 256);
  compare_with_sorting(*rung, 2, 2);
}

TEST(AsyncRung, CohortsCompeteWithinThemselves) {
  const auto rung = make_cohort_rung(2, 4);
  for (const std::size_t trial : {0U, 1U, 4U, 5U}) {
    rung->add({.trial = trial, .values = {static_cast<double>(trial), 0}});
    rung->wait(trial);
  }
  EXPECT_EQ(rung->promotable(), 0U);
  rung->leave(0);
  EXPECT_EQ(rung->promotable(), 4U);
  rung->leave(4);
  EXPECT_EQ(rung->promotable(), std::nullopt);
  EXPECT_EQ(rung->best_waiting(), 1U);
}

class Recorder final : public Sampler {
 public:
  void tell(const Observation& observation) override { told.push_back(observation.trial); }
  Point suggest(std::size_t /*trial*/, std::span<const Point> /*pending*/,
                core::Random& /*random*/) override {
    return {};
  }
  std::vector<std::size_t> told = {};
};

TEST(ObservationQueue, TellsInTheOrderInWhichLevelsEnded) {
  ObservationQueue queue;
  Recorder recorder;
  queue.expect(7, 1, 0);
  queue.expect(3, 2, 0);
  queue.expect(9, 3, 0);
  queue.fill({.trial = 1, .level = 0});
  queue.flush(recorder);
  EXPECT_THAT(recorder.told, ElementsAre());  // the older one is not known yet
  queue.fill({.trial = 2, .level = 0});
  queue.flush(recorder);
  EXPECT_THAT(recorder.told, ElementsAre(2, 1));
  queue.fill({.trial = 3, .level = 0});
  queue.flush(recorder);
  EXPECT_THAT(recorder.told, ElementsAre(2, 1, 3));
}

TEST(ObservationQueue, GoesOnWithoutWhatWillNeverBeKnown) {
  ObservationQueue queue;
  Recorder recorder;
  queue.expect(1, 1, 0);
  queue.expect(2, 2, 0);
  queue.fill({.trial = 2, .level = 0});
  queue.drop(1, 0);
  queue.flush(recorder);
  EXPECT_THAT(recorder.told, ElementsAre(2));
}

TEST(ObservationQueue, TellsWhatNobodyCountedAtOnce) {
  ObservationQueue queue;
  Recorder recorder;
  queue.expect(0, 1, 0);
  queue.expect(0, 2, 0);
  queue.fill({.trial = 2, .level = 0});
  queue.drop(1, 0);
  queue.fill({.trial = 1, .level = 0});  // too late
  queue.flush(recorder);
  EXPECT_THAT(recorder.told, ElementsAre(2));
}

}  // namespace
}  // namespace fleetfit::tune
