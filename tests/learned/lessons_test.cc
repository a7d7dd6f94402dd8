#include "fleetfit/learned/lessons.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fleetfit/learned/answer.h"
#include "tests/core/temporary_folder.h"
#include "tests/learned/small_model.h"

namespace fleetfit::learned {
namespace {

using testing::HasSubstr;

const space::Space& cells() { return **space::find_space("nasbench201"); }

/// Devices of two kinds: in one a 3x3 convolution takes three times as long as a 1x1, in the other
/// six times. Reference designs have three of the one or of the other.
Samples two_kinds(std::size_t devices = 8) {
  Samples samples{.space = &cells(),
                  .designs = *space::sample_designs(cells(), {.seed = 3, .count = 60}),
                  .features = {.names = {"ref:narrow", "ref:wide"}, .is_reference = {true, true}},
                  .costs = {{.name = "latency_ms"}}};
  for (std::size_t d = 0; d < devices; ++d) {
    const double speed = 1.0 + static_cast<double>(d);
    const double wide = d % 2 == 0 ? 3 : 6;
    samples.devices.push_back("d" + std::to_string(d));
    samples.features.values.insert(samples.features.values.end(),
                                   {speed * (1 + 3), speed * (1 + 3 * wide)});
    for (std::size_t i = 0; i < samples.designs.size(); ++i) {
      const auto text = cells().format(samples.designs[i]);
      samples.costs[0].values.push_back(
          speed * (1 + static_cast<double>(std::ranges::count(text, '2')) +
                   wide * static_cast<double>(std::ranges::count(text, '3'))));
    }
  }
  for (std::size_t i = 0; i < samples.designs.size(); ++i) {
    const auto text = cells().format(samples.designs[i]);
    samples.accuracy.push_back(50 + 5.0 * static_cast<double>(std::ranges::count(text, '3')) +
                               2.0 * static_cast<double>(std::ranges::count(text, '2')));
  }
  return samples;
}

TEST(DeviceFolds, HoldsOutDevicesTogetherThatBehaveAlike) {
  const auto folds = device_folds(two_kinds(), 2);
  for (std::size_t d = 2; d < 8; ++d) EXPECT_EQ(folds[d], folds[d % 2]);
  EXPECT_NE(folds[0], folds[1]);
}

TEST(CostTargets, AreLogarithmsWithoutTheDevicesSpeed) {
  const auto samples = two_kinds();
  const auto inputs = fit_device_inputs(samples.features, 0.3).value();
  const auto devices = read_devices(inputs, samples).value();

  const auto targets = cost_targets(samples, 0, devices);

  // Devices 0 and 2 are of one kind, and differ in speed alone.
  for (std::size_t i = 0; i < 60; ++i) {
    const bool works = cells().live_slots(samples.designs[i]).any();
    EXPECT_NE(std::isnan(targets.numbers[i]), works);
    if (!works) continue;
    EXPECT_NEAR(targets.numbers[i], targets.numbers[2 * 60 + i], 1e-5) << i;
  }
  const double level = 0.5 * (std::log(4.0) + std::log(10.0));
  EXPECT_NEAR(devices[0].level, level, 1e-9);
  EXPECT_NEAR(targets.offset + targets.scale * targets.numbers[5],
              std::log(samples.costs_on(0, 0)[5]) - level, 1e-5);
}

TEST(AccuracyTargets, ComeBackByTheHyperbolicSine) {
  const auto samples = two_kinds();
  const auto targets = accuracy_targets(samples);
  for (const std::size_t i : {0U, 10U, 59U}) {
    EXPECT_NEAR(targets.centre + targets.scale * std::sinh(targets.numbers[i]), samples.accuracy[i],
                1e-3);
  }
}

TEST(Samples, AreTheSameWhenReadAgain) {
  const core::TemporaryFolder folder;
  auto samples = two_kinds(4);
  samples.costs[0].values[7] = NAN;
  samples.accuracy[3] = NAN;
  samples.features.values[1] = NAN;
  ASSERT_TRUE(write_samples(samples, folder.path() / "s.json"));

  const auto again = read_samples(folder.path() / "s.json").value();

  EXPECT_EQ(again.designs, samples.designs);
  EXPECT_EQ(again.devices, samples.devices);
  EXPECT_TRUE(std::isnan(again.costs[0].values[7]));
  EXPECT_TRUE(std::isnan(again.accuracy[3]));
  EXPECT_TRUE(std::isnan(again.features.values[1]));
  EXPECT_EQ(again.costs[0].values[8], samples.costs[0].values[8]);
}

TEST(Samples, NameWhatCannotBeLearnedFrom) {
  auto samples = two_kinds(4);
  samples.costs[0].values[60 + 4] = -1;
  EXPECT_THAT(check(samples).error().message, HasSubstr("latency_ms on d1: -1"));
  samples = two_kinds(4);
  samples.accuracy.assign(60, 5.0);
  EXPECT_THAT(check(samples).error().message, HasSubstr("all designs have the same"));
}

TEST(MakeTasks, FindsTheBestDesignForEachGoal) {
  const auto model = Model::make(small_parts()).value();
  auto samples = two_kinds(4);
  const std::vector<DeviceVector> known{model.parts().device.read(std::vector{1.0, 2.0}).value(),
                                        model.parts().device.read(std::vector{3.0, 2.0}).value()};
  core::ThreadPool pool(2);

  const auto tasks = make_tasks(model, samples, known, {.devices = 5, .goals = 4}, pool);

  ASSERT_EQ(tasks.size(), 20);
  for (const auto& task : tasks) {
    const DeviceJudge judge(model, task.device);
    const auto searched = searched_answer(judge, task.goal, pool, 1).value();
    const auto taught = judged_answer(judge, task.goal, task.best);
    EXPECT_EQ(taught.keeps_limits, searched.keeps_limits);
    if (!task.goal.weights.empty()) continue;
    EXPECT_NEAR(taught.accuracy, searched.accuracy, 1e-5);
  }
}

TEST(MakeTasks, ComesNearTheBestInALargeSpaceToo) {
  const auto model = Model::make(small_parts()).value();
  auto samples = two_kinds(4);
  const std::vector<DeviceVector> known{model.parts().device.read(std::vector{1.0, 2.0}).value()};
  core::ThreadPool pool(2);
  // As if the space were too large to look at all of it.
  const auto tasks =
      make_tasks(model, samples, known,
                 {.devices = 20, .goals = 4, .small = 0, .pool = 300, .rounds = 6}, pool);
  double lost = 0;
  for (const auto& task : tasks) {
    const DeviceJudge judge(model, task.device);
    if (!task.goal.weights.empty()) continue;
    lost = std::max(lost, searched_answer(judge, task.goal, pool, 1)->accuracy -
                              judged_answer(judge, task.goal, task.best).accuracy);
  }
  EXPECT_LT(lost, 0.12);  // of at most sinh(1.5) = 2.1
}

TEST(ChooseExploration, TakesWhereTheMembersDisagree) {
  auto parts = small_parts();
  auto other = parts.costs[0].members[1].network.parts();
  for (std::size_t edge = 0; edge < 6; ++edge) other.skip.weights[(edge * 5 + 4) * 3] = 0.5F;
  parts.costs[0].members[1].network = DesignNetwork::make(other, 62).value();
  const auto model = Model::make(std::move(parts)).value();
  const std::vector<DeviceVector> devices{model.parts().device.read(std::vector{1.0, 1.0}).value()};
  space::Population candidates(6);
  for (const auto* text : {"111111", "444411", "222222", "444444", "333311"})
    candidates.add(*cells().parse(text));

  const auto chosen = choose_exploration(model, devices, candidates, 2);

  EXPECT_THAT(chosen, testing::ElementsAre(3, 1));
}

TEST(Calibrate, TellsHowFarPredictionsOnNewDevicesAreOff) {
  auto samples = two_kinds(9);
  // A third kind, with an operator of its own that is slow: the others cannot know.
  for (std::size_t i = 0; i < samples.designs.size(); ++i) {
    const auto text = cells().format(samples.designs[i]);
    for (const std::size_t d : {6U, 7U, 8U})
      samples.costs[0].values[d * 60 + i] *=
          1 + 0.2 * static_cast<double>(std::ranges::count(text, '4'));
  }
  auto parts = small_parts(3);
  parts.device = fit_device_inputs(samples.features, 0.3).value();
  core::ThreadPool pool(2);
  auto strange = parts;
  calibrate(strange, samples, device_folds(samples, 3), 0.3, pool);
  calibrate(parts, two_kinds(9), device_folds(two_kinds(9), 3), 0.3, pool);

  EXPECT_GT(parts.costs[0].rank_correlation, 0.5);
  EXPECT_GT(parts.costs[0].usual_spread, 0);
  EXPECT_GT(strange.costs[0].margin, parts.costs[0].margin);
  ASSERT_TRUE(strange.costs[0].risk.is_known());
  EXPECT_GT(strange.costs[0].risk.price, 0);
  EXPECT_GT(strange.costs[0].risk.room(0.1), parts.costs[0].risk.room(0.1));
}

}  // namespace
}  // namespace fleetfit::learned
