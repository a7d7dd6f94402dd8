#include "fleetfit/tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/tune/simulated_study.h"

namespace fleetfit::tune {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Setting {
  SchedulerKind scheduler = SchedulerKind::none;
  SamplerKind sampler = SamplerKind::random;
  std::size_t objectives = 1;
  bool limits = false;
};

Study make_study(const Setting& setting, const BudgetOptions& budget) {
  Study study;
  study.name = "simulated";
  study.parameters = Parameters::create({{.name = "x", .low = 0, .high = 1},
                                         {.name = "kind", .values = {"a", "b", "c"}}})
                         .value();
  study.inference = {.devices = {"local"}};
  study.objective.goals = {{.metric = Metric::accuracy, .maximize = true}};
  if (setting.objectives == 2) study.objective.goals.push_back({.metric = Metric::latency});
  if (setting.limits) study.constraints.devices = {{"local", Metric::latency, 27}};
  study.budget = budget;
  study.algorithm.sampler = setting.sampler;
  study.algorithm.scheduler = setting.scheduler;
  study.seed = 5;
  return study;
}

Study one_objective(SchedulerKind scheduler, const BudgetOptions& budget) {
  Study study = make_study({.scheduler = scheduler}, budget);
  study.inference.reset();
  return study;
}

bool same(const Decision& a, const Decision& b) {
  if (a.index() != b.index()) return false;
  if (const auto* start = std::get_if<StartTrial>(&a)) {
    const auto& other = std::get<StartTrial>(b);
    return start->number == other.number && start->bracket == other.bracket &&
           start->level == other.level && same_point(start->point, other.point);
  }
  if (const auto* promote = std::get_if<Promote>(&a)) {
    const auto& other = std::get<Promote>(b);
    return promote->number == other.number && promote->level == other.level;
  }
  if (const auto* end = std::get_if<End>(&a)) {
    const auto& other = std::get<End>(b);
    return end->number == other.number && end->state == other.state && end->reason == other.reason;
  }
  return true;
}

std::string text_of(const Decision& decision) {
  if (const auto* start = std::get_if<StartTrial>(&decision)) {
    return "start " + std::to_string(start->number) + " at " + std::to_string(start->level);
  }
  if (const auto* promote = std::get_if<Promote>(&decision)) {
    return "promote " + std::to_string(promote->number);
  }
  if (const auto* end = std::get_if<End>(&decision)) return "end " + std::to_string(end->number);
  return std::holds_alternative<Done>(decision) ? "done" : "wait";
}

Tuner rebuilt(const Study& study, const std::vector<Trial>& trials) {
  Tuner tuner(study);
  for (const Trial& trial : trials) tuner.report(trial);
  return tuner;
}

/// Lets the study run to its end; `look` sees each decision before it is applied.
template <class Look>
void run(const Study& study, SimulatedStudy& world, const Look& look) {
  Tuner tuner(study);
  for (int i = 0; i < 1'000'000; ++i) {
    const Room room = world.room();
    const Decision decision = tuner.next(room);
    look(decision, room);
    if (std::holds_alternative<Done>(decision)) return;
    if (!std::holds_alternative<Wait>(decision)) {
      tuner.report(world.apply(decision));
      continue;
    }
    const Trial* changed = world.step();
    ASSERT_NE(changed, nullptr) << "the tuner waits for what never happens";
    tuner.report(*changed);
  }
  FAIL() << "the study does not end";
}

void run(const Study& study, SimulatedStudy& world) {
  run(study, world, [](const Decision&, Room) {});
}

class EveryScheduler : public testing::TestWithParam<Setting> {};

constexpr BudgetOptions kSmall = {.kind = BudgetKind::multi,
                                  .min_epochs = 1,
                                  .max_epochs = 8,
                                  .min_data = 0.125,
                                  .eta = 2,
                                  .max_trials = 40};

TEST_P(EveryScheduler, EndsEveryTrialOfEveryStudy) {
  const Study study = make_study(GetParam(), kSmall);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SimulatedStudy world(study, {.workers = 1 + 3 * seed, .failures = 0.1, .seed = seed});
    run(study, world);

    EXPECT_EQ(world.trials().size(), 40U);
    std::size_t finished = 0;
    for (const Trial& trial : world.trials()) {
      EXPECT_TRUE(has_ended(trial.state)) << trial.number;
      if (trial.state != TrialState::finished) continue;
      ++finished;
      EXPECT_EQ(trial.results.back().budget, (Budget{.epochs = 8, .data_fraction = 1}));
    }
    EXPECT_GT(finished, 0U);
  }
}

/// At each decision, a second tuner is told the present states alone.
void crash_everywhere(const Study& study, SimulatedStudy& world) {
  std::size_t decisions = 0;

  run(study, world, [&](const Decision& lived, Room room) {
    ++decisions;
    const Decision anew = rebuilt(study, world.trials()).next(room);
    ASSERT_TRUE(same(lived, anew)) << "decision " << decisions << ": " << text_of(lived)
                                   << ", after a crash " << text_of(anew);
  });
  EXPECT_GT(decisions, 100U);
}

TEST_P(EveryScheduler, GoesOnAfterACrashAsIfNothingHadHappened) {
  const Study study = make_study(GetParam(), kSmall);
  SimulatedStudy world(study, {.workers = 5, .failures = 0.05, .seed = 11});
  crash_everywhere(study, world);
}

TEST_P(EveryScheduler, GoesOnAfterACrashEvenIfNobodyCountsEndsOfLevels) {
  if (GetParam().objectives > 1) GTEST_SKIP() << "the order matters with several objectives";
  const Study study = make_study(GetParam(), kSmall);
  SimulatedStudy world(study, {.workers = 5, .seed = 12, .counts_ends = false});
  crash_everywhere(study, world);
}

TEST_P(EveryScheduler, DecidesTheSameWhenAskedTwice) {
  const Study study = make_study(GetParam(), kSmall);
  SimulatedStudy world(study, {.workers = 3});
  Tuner tuner(study);
  for (int i = 0; i < 200; ++i) {
    const Decision first = tuner.next(world.room());
    const auto* end = std::get_if<End>(&first);
    const bool running = end != nullptr && world.trials()[end->number].state == TrialState::running;
    if (!running) {
      EXPECT_TRUE(same(first, tuner.next(world.room()))) << text_of(first);
    }
    if (std::holds_alternative<Done>(first)) return;
    const Trial* changed = std::holds_alternative<Wait>(first) ? world.step() : &world.apply(first);
    ASSERT_NE(changed, nullptr);
    tuner.report(*changed);
  }
}

std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const auto scheduler :
       {SchedulerKind::none, SchedulerKind::successive_halving, SchedulerKind::hyperband,
        SchedulerKind::asha, SchedulerKind::median}) {
    settings.push_back({.scheduler = scheduler, .sampler = SamplerKind::tpe});
    settings.push_back({.scheduler = scheduler, .sampler = SamplerKind::bohb, .limits = true});
    settings.push_back({.scheduler = scheduler, .sampler = SamplerKind::nsga2, .objectives = 2});
  }
  return settings;
}

std::string setting_name(const testing::TestParamInfo<Setting>& info) {
  constexpr std::array<std::string_view, 5> names = {"None", "Halving", "Hyperband", "Asha",
                                                     "Median"};
  const Setting& setting = info.param;
  return std::string(names.at(static_cast<std::size_t>(setting.scheduler))) +
         (setting.limits ? "WithLimits" : "") + (setting.objectives == 2 ? "OfTwoObjectives" : "");
}

INSTANTIATE_TEST_SUITE_P(Tuner, EveryScheduler, testing::ValuesIn(all_settings()), setting_name);

/// How many trials of a bracket have ended each level.
std::map<std::size_t, std::size_t> ended_by_level(const std::vector<Trial>& trials,
                                                  std::size_t bracket) {
  std::map<std::size_t, std::size_t> counts;
  for (const Trial& trial : trials) {
    if (trial.bracket != bracket) continue;
    for (const LevelResult& result : trial.results) ++counts[result.level];
  }
  return counts;
}

using Counts = std::map<std::size_t, std::size_t>;

TEST(Hyperband, HasTheBracketsOfThePaper) {
  // R = 81, eta = 3: table 1 of Li and others, JMLR 18.
  const BudgetOptions budget = {
      .kind = BudgetKind::epochs, .min_epochs = 1, .max_epochs = 81, .eta = 3, .max_trials = 143};
  const Study study = one_objective(SchedulerKind::hyperband, budget);
  SimulatedStudy world(study, {.workers = 6, .failures = 0});
  run(study, world);

  EXPECT_EQ(ended_by_level(world.trials(), 0), (Counts{{0, 81}, {1, 27}, {2, 9}, {3, 3}, {4, 1}}));
  EXPECT_EQ(ended_by_level(world.trials(), 1), (Counts{{1, 34}, {2, 11}, {3, 3}, {4, 1}}));
  EXPECT_EQ(ended_by_level(world.trials(), 2), (Counts{{2, 15}, {3, 5}, {4, 1}}));
  EXPECT_EQ(ended_by_level(world.trials(), 3), (Counts{{3, 8}, {4, 2}}));
  EXPECT_EQ(ended_by_level(world.trials(), 4), (Counts{{4, 5}}));
}

TEST(Hyperband, RepeatsItsBracketsUntilTrialsAreUsedUp) {
  // Levels 1, 2, 4, 8: brackets of 8, 6, 4 and 4. 31 trials: the first again, and one.
  const BudgetOptions budget = {
      .kind = BudgetKind::epochs, .min_epochs = 1, .max_epochs = 8, .eta = 2, .max_trials = 31};
  const Study study = one_objective(SchedulerKind::hyperband, budget);
  SimulatedStudy world(study, {.failures = 0});
  run(study, world);

  std::map<std::size_t, std::size_t> sizes;
  for (const Trial& trial : world.trials()) ++sizes[trial.bracket];
  EXPECT_EQ(sizes, (Counts{{0, 8}, {1, 6}, {2, 4}, {3, 4}, {4, 8}, {5, 1}}));
  EXPECT_EQ(ended_by_level(world.trials(), 5), (Counts{{1, 1}, {2, 1}, {3, 1}}));
}

TEST(SuccessiveHalving, KeepsTheBestOfEachRung) {
  const BudgetOptions budget = {
      .kind = BudgetKind::epochs, .min_epochs = 1, .max_epochs = 8, .eta = 2, .max_trials = 16};
  const Study study = one_objective(SchedulerKind::successive_halving, budget);
  SimulatedStudy world(study, {.workers = 3, .failures = 0});
  run(study, world);

  // Accuracy grows with the first parameter at every level, so the order by it is known.
  std::vector<double> xs;
  for (const Trial& trial : world.trials()) xs.push_back(trial.point[0]);
  std::ranges::sort(xs, std::greater<>());
  for (const Trial& trial : world.trials()) {
    const auto rank = static_cast<std::size_t>(std::ranges::find(xs, trial.point[0]) - xs.begin());
    const std::size_t levels = rank < 2 ? 4 : rank < 4 ? 3 : rank < 8 ? 2 : 1;
    EXPECT_EQ(trial.results.size(), levels) << "rank " << rank;
    EXPECT_EQ(trial.state, rank < 2 ? TrialState::finished : TrialState::stopped);
  }
  Tuner tuner = rebuilt(study, world.trials());
  ASSERT_EQ(tuner.rungs().size(), 4U);
  EXPECT_EQ(tuner.rungs()[1].ended, 8U);
  EXPECT_EQ(tuner.rungs()[1].promoted, 4U);
  EXPECT_EQ(tuner.rungs()[3].promoted, 0U);
}

/// A tuner and the trials it was told, for tests that say what happens.
struct Dialogue {
  explicit Dialogue(const Study& of) : study(of), tuner(of) {}

  Trial& start() {
    const auto start = std::get<StartTrial>(tuner.next());
    trials.push_back({.number = start.number, .point = start.point, .level = start.level});
    tuner.report(trials.back());
    return trials.back();
  }
  void end_level(std::size_t number, double accuracy) {
    Trial& trial = trials[number];
    trial.state = TrialState::paused;
    trial.results.push_back({.level = trial.level, .order = ++order, .accuracy = accuracy});
    tuner.report(trial);
  }
  void set(std::size_t number, TrialState state) {
    trials[number].state = state;
    tuner.report(trials[number]);
  }

  const Study& study;
  Tuner tuner;
  std::vector<Trial> trials = {};
  std::int64_t order = 0;
};

constexpr BudgetOptions kThreeLevels = {
    .kind = BudgetKind::epochs, .min_epochs = 1, .max_epochs = 4, .eta = 2, .max_trials = 4};

TEST(Asha, PromotesWithoutWaitingForARungToBeFull) {
  const Study study = one_objective(SchedulerKind::asha, kThreeLevels);
  Dialogue dialogue(study);
  for (int i = 0; i < 3; ++i) dialogue.start();
  dialogue.end_level(0, 0.5);
  EXPECT_EQ(text_of(dialogue.tuner.next()), "start 3 at 0");  // the best of one is half a trial
  dialogue.end_level(1, 0.7);

  const Decision decision = dialogue.tuner.next();

  ASSERT_TRUE(std::holds_alternative<Promote>(decision));
  EXPECT_EQ(std::get<Promote>(decision).number, 1U);
  EXPECT_EQ(std::get<Promote>(decision).level, 1U);
  EXPECT_EQ(text_of(dialogue.tuner.next(Room::none)), "wait");
}

TEST(Asha, LetsOneTrialReachTheLargestBudgetHoweverFewThereAre) {
  BudgetOptions budget = kThreeLevels;
  budget.max_trials = 1;
  const Study study = one_objective(SchedulerKind::asha, budget);
  SimulatedStudy world(study, {.failures = 0});
  run(study, world);
  EXPECT_EQ(world.trials()[0].state, TrialState::finished);
  EXPECT_EQ(world.trials()[0].results.size(), 3U);
}

TEST(SuccessiveHalving, GoesOnWithoutTrialsThatFailed) {
  const Study study = one_objective(SchedulerKind::successive_halving, kThreeLevels);
  Dialogue dialogue(study);
  for (int i = 0; i < 4; ++i) dialogue.start();
  dialogue.end_level(0, 0.5);
  dialogue.set(1, TrialState::failed);
  dialogue.end_level(2, 0.4);
  EXPECT_EQ(text_of(dialogue.tuner.next()), "wait");
  dialogue.set(3, TrialState::failed);

  EXPECT_EQ(text_of(dialogue.tuner.next()), "promote 0");
  dialogue.trials[0].level = 1;
  dialogue.set(0, TrialState::queued);
  EXPECT_EQ(text_of(dialogue.tuner.next()), "promote 2");
}

TEST(SuccessiveHalving, WaitsForInferenceOfTheLastTrial) {
  Study study =
      make_study({.scheduler = SchedulerKind::successive_halving, .objectives = 2}, kThreeLevels);
  Dialogue dialogue(study);
  for (int i = 0; i < 4; ++i) dialogue.start();
  for (std::size_t i = 0; i < 4; ++i) {
    if (i != 2) dialogue.trials[i].inference = {{.device = "local", .latency_ms = 5}};
    dialogue.end_level(i, 0.5 + 0.1 * static_cast<double>(i));
  }
  EXPECT_EQ(text_of(dialogue.tuner.next()), "wait");

  dialogue.trials[2].inference = {{.device = "local", .latency_ms = 1}};
  dialogue.tuner.report(dialogue.trials[2]);

  // 2 is faster than all, 3 more accurate than all; both stay.
  const Decision decision = dialogue.tuner.next();
  ASSERT_TRUE(std::holds_alternative<End>(decision));
  EXPECT_EQ(std::get<End>(decision).number, 1U);
  EXPECT_THAT(std::get<End>(decision).reason, HasSubstr("best 2 of 4 at level 0"));
}

TEST(MedianStop, EndsARunningTrialThatIsBelowTheMedianAtItsEpoch) {
  BudgetOptions budget = kThreeLevels;
  budget.max_trials = 10;
  const Study study = one_objective(SchedulerKind::median, budget);
  Dialogue dialogue(study);
  for (int i = 0; i < 7; ++i) dialogue.start();
  for (std::size_t i = 0; i < 5; ++i) {  // means after two epochs: 0.2, 0.25, 0.3, 0.35, 0.4
    const double first = 0.1 + 0.05 * static_cast<double>(i);
    dialogue.trials[i].epochs = {first, first + 0.2, 0.6, 0.7};
    dialogue.end_level(i, 0.7);
    dialogue.set(i, TrialState::finished);
  }
  dialogue.trials[5].epochs = {0.1, 0.31};
  dialogue.set(5, TrialState::running);
  EXPECT_EQ(text_of(dialogue.tuner.next(Room::none)), "wait");

  dialogue.trials[6].epochs = {0.1, 0.29};
  dialogue.set(6, TrialState::running);

  const Decision decision = dialogue.tuner.next(Room::none);
  ASSERT_TRUE(std::holds_alternative<End>(decision));
  EXPECT_EQ(std::get<End>(decision).number, 6U);
  EXPECT_THAT(std::get<End>(decision).reason,
              AllOf(HasSubstr("0.29 after 2 epochs"), HasSubstr("median of 5 others, 0.3")));
  EXPECT_EQ(text_of(dialogue.tuner.next(Room::none)), "wait");  // it was said once
  dialogue.trials[6].stop_requested = true;
  dialogue.tuner.report(dialogue.trials[6]);
  EXPECT_EQ(text_of(dialogue.tuner.next(Room::none)), "wait");
}

TEST(Tuner, EndsNetworksThatAreTooSlowBeforeTheyAreTrained) {
  const Study study = make_study({.scheduler = SchedulerKind::asha, .limits = true}, kThreeLevels);
  Dialogue dialogue(study);
  dialogue.start();
  dialogue.trials[0].inference = {{.device = "local", .latency_ms = 34.1}};
  dialogue.tuner.report(dialogue.trials[0]);

  const Decision decision = dialogue.tuner.next();
  ASSERT_TRUE(std::holds_alternative<End>(decision));
  EXPECT_EQ(std::get<End>(decision).state, TrialState::stopped);
  EXPECT_EQ(std::get<End>(decision).reason, "latency on local: 34.1 ms, at most 27 ms");
  dialogue.set(0, TrialState::stopped);
  EXPECT_EQ(text_of(dialogue.tuner.next()), "start 1 at 0");
}

TEST(Tuner, FailsTrialsWhoseResultLacksWhatTheObjectiveNeeds) {
  Study study = one_objective(SchedulerKind::successive_halving, kThreeLevels);
  study.objective.goals = {{.metric = Metric::other, .name = "f1", .maximize = true}};
  Dialogue dialogue(study);
  dialogue.start();
  dialogue.end_level(0, 0.9);

  const Decision decision = dialogue.tuner.next();
  ASSERT_TRUE(std::holds_alternative<End>(decision));
  EXPECT_EQ(std::get<End>(decision).state, TrialState::failed);
  EXPECT_EQ(std::get<End>(decision).reason, "the result has no f1, which the objective needs");
}

TEST(Tuner, DrawsTheSamePointsForTheSameSeed) {
  Study study = one_objective(SchedulerKind::none, kThreeLevels);
  Dialogue first(study);
  Dialogue second(study);
  for (int i = 0; i < 4; ++i) {
    const Point point = first.start().point;
    EXPECT_TRUE(same_point(point, second.start().point));
  }
  EXPECT_FALSE(same_point(first.trials[0].point, first.trials[1].point));
  Study other = study;
  other.seed = 6;
  Dialogue third(other);
  EXPECT_FALSE(same_point(third.start().point, first.trials[0].point));
}

}  // namespace
}  // namespace fleetfit::tune
