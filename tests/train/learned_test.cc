#include "fleetfit/train/learned.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "fleetfit/core/statistics.h"
#include "fleetfit/learned/answer.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::train {
namespace {

using learned::Samples;

const space::Space& cells() { return **space::find_space("nasbench201"); }

/// ms of a design on a device where operators cost this much.
double latency_of(space::Design design, double base, double narrow, double wide) {
  double sum = base;
  for (const auto op : design) sum += op == 2 ? narrow : op == 3 ? wide : 0.05;
  return sum;
}

double accuracy_of(space::Design design) {
  double sum = 0;
  for (std::size_t edge = 0; edge < design.size(); ++edge) {
    const double place = 1 + 0.1 * static_cast<double>(edge);
    sum += place * (design[edge] == 3 ? 2.0 : design[edge] == 2 ? 1.3 : 0.2);
  }
  return 80 + sum;
}

struct Costs {
  double base;
  double narrow;
  double wide;
};

const std::vector<Costs>& devices() {
  static const std::vector<Costs> all{{1, 1, 2},    {2, 1, 5},   {10, 30, 40}, {0.5, 0.2, 1},
                                      {5, 3, 30},   {1, 2, 2.2}, {3, 6, 8},    {0.1, 0.1, 0.4},
                                      {20, 10, 60}, {4, 4, 9}};
  return all;
}

/// Three reference designs, and a few hundred others on the first devices.
Samples samples_of(std::size_t count, std::size_t designs = 400) {
  Samples samples{
      .space = &cells(),
      .designs = *space::sample_designs(cells(), {.seed = 2, .count = designs}),
      .features = {.names = {"ref:a", "ref:b", "ref:c"}, .is_reference = {true, true, true}},
      .costs = {{.name = "latency_ms"}}};
  for (std::size_t d = 0; d < count; ++d) {
    const auto [base, narrow, wide] = devices()[d];
    samples.devices.push_back("d" + std::to_string(d));
    for (const auto* reference : {"111111", "222111", "333311"})
      samples.features.values.push_back(latency_of(*cells().parse(reference), base, narrow, wide));
    for (std::size_t i = 0; i < samples.designs.size(); ++i)
      samples.costs[0].values.push_back(
          latency_of(std::as_const(samples.designs)[i], base, narrow, wide));
  }
  for (std::size_t i = 0; i < samples.designs.size(); ++i)
    samples.accuracy.push_back(accuracy_of(std::as_const(samples.designs)[i]));
  return samples;
}

class Learned : public testing::Test {
 protected:
  Result<learned::Model> train(const Samples& samples, const LearnOptions& options,
                               int threads = 2) {
    core::ThreadPool pool(threads);
    const auto progress = core::make_silent_progress();
    return train_learned(samples, options, {.pool = pool, .clock = clock_, .progress = *progress});
  }

  core::SystemClock clock_;
};

LearnOptions quick() {
  return {.members = 3, .accuracy_members = 1, .optimizers = 1, .effort = 0.2};
}

/// Points lost against the best design within the budget on a device that was left out.
double points_lost(const learned::Model& model, const Costs& costs, double share) {
  const auto [base, narrow, wide] = costs;
  std::vector<double> references;
  for (const auto* reference : {"111111", "222111", "333311"})
    references.push_back(latency_of(*cells().parse(reference), base, narrow, wide));
  const learned::DeviceJudge judge(model, model.parts().device.read(references).value());
  const double budget = base + share * 6 * wide;
  const auto answer = learned::answer(judge, {.limits = {budget}});
  double best = 0;
  std::vector<space::Choice> design(6);
  do {
    if (latency_of(design, base, narrow, wide) <= budget)
      best = std::max(best, accuracy_of(design));
  } while (cells().next(design));
  EXPECT_LT(latency_of(answer.design, base, narrow, wide), 1.1 * budget);
  return best - accuracy_of(answer.design);
}

TEST_F(Learned, SupervisedAnswersForADeviceThatItHasNotSeen) {
  const auto model = train(samples_of(9), quick()).value();
  EXPECT_EQ(model.parts().optimizers.size(), 1);
  EXPECT_GT(model.parts().costs[0].rank_correlation, 0.9);
  for (const double share : {0.3, 0.5, 0.8}) EXPECT_LT(points_lost(model, devices()[9], share), 2);
}

TEST_F(Learned, UnsupervisedAnswersForADeviceThatItHasNotSeen) {
  auto options = quick();
  options.method = LearnMethod::unsupervised;
  options.effort = 0.1;
  const auto model = train(samples_of(9), options).value();
  EXPECT_EQ(model.parts().lineage.method, "unsupervised");
  for (const double share : {0.3, 0.5, 0.8}) EXPECT_LT(points_lost(model, devices()[9], share), 2);
}

TEST_F(Learned, ProposalsOfTheOptimizerComeNearTheBestWithoutRefinement) {
  for (const auto method : {LearnMethod::supervised, LearnMethod::unsupervised}) {
    auto options = quick();
    options.method = method;
    const auto model = train(samples_of(9), options).value();
    core::ThreadPool pool(1);
    const auto small = samples_of(9, 30);
    std::vector<double> lost;
    for (const double factor : {0.6, 0.8, 1.0, 1.3, 1.6}) {
      for (std::size_t d = 0; d < 9; ++d) {
        const auto row = small.features.row(d);
        const learned::DeviceJudge judge(model, model.parts().device.read(row).value());
        const learned::Goal goal{.limits = {factor * std::exp(judge.typical(0))}};
        const auto proposed = learned::answer(judge, goal, {.beam = 8, .refinements = 0});
        const auto searched = learned::searched_answer(judge, goal, pool, 1).value();
        if (searched.keeps_limits) lost.push_back(searched.accuracy - proposed.accuracy);
      }
    }
    EXPECT_LT(*core::median(lost), 1.5) << to_string(method);
  }
}

TEST_F(Learned, GivesTheSameModelWhateverTheNumberOfThreads) {
  auto options = quick();
  options.effort = 0.02;
  const auto samples = samples_of(5, 80);
  const auto one = train(samples, options, 1).value();
  const auto three = train(samples, options, 3).value();
  const learned::Goal goal{.limits = {9}};
  const auto device = one.parts().device.read(samples.features.row(1)).value();
  const auto a = learned::answer(learned::DeviceJudge(one, device), goal);
  const auto b = learned::answer(learned::DeviceJudge(three, device), goal);
  EXPECT_EQ(a.design, b.design);
  EXPECT_EQ(a.accuracy, b.accuracy);
  EXPECT_EQ(a.costs[0].value, b.costs[0].value);
}

TEST_F(Learned, LearnsEnergyBesideLatency) {
  auto samples = samples_of(6, 200);
  samples.costs.push_back({.name = "energy_mj"});
  for (const double ms : samples.costs[0].values) samples.costs[1].values.push_back(3 * ms * ms);
  const auto model = train(samples, quick()).value();
  ASSERT_EQ(model.parts().costs.size(), 2);
  const learned::DeviceJudge judge(model,
                                   model.parts().device.read(samples.features.row(0)).value());
  // On this device 8 ms are 192 mJ: the energy is the tighter limit.
  const auto answer = learned::answer(judge, {.limits = {8, 75}});
  EXPECT_TRUE(answer.keeps_limits);
  EXPECT_LE(answer.costs[1].safe, 75);
  EXPECT_NEAR(answer.costs[1].value, 3 * answer.costs[0].value * answer.costs[0].value,
              0.5 * answer.costs[1].value);
}

/// Asks to stop when some progress was made.
class StopAfter final : public core::Progress {
 public:
  StopAfter(std::stop_source& stop, int events) : stop_(stop), left_(events) {}
  void receive(const core::ProgressEvent& event) override {
    if (event.kind == core::ProgressKind::advanced && --left_ == 0) stop_.request_stop();
  }

 private:
  std::stop_source& stop_;
  int left_;
};

TEST_F(Learned, GoesOnAfterTheNetworksThatWereFinished) {
  const core::TemporaryFolder folder;
  auto options = quick();
  options.effort = 0.02;
  const auto samples = samples_of(5, 80);
  const auto whole = train(samples, options).value();

  options.checkpoint = folder.path() / "part";
  core::ThreadPool alone(1);
  std::stop_source stop;
  StopAfter progress(stop, 3);
  const auto ended = train_learned(
      samples, options,
      {.pool = alone, .clock = clock_, .progress = progress, .stop = stop.get_token()});
  EXPECT_EQ(ended.error().code, ErrorCode::cancelled);
  EXPECT_TRUE(std::filesystem::exists(options.checkpoint));

  const auto again = train(samples, options).value();
  EXPECT_FALSE(std::filesystem::exists(options.checkpoint));
  const auto device = whole.parts().device.read(samples.features.row(1)).value();
  const learned::Goal goal{.limits = {9}};
  EXPECT_EQ(learned::answer(learned::DeviceJudge(whole, device), goal).accuracy,
            learned::answer(learned::DeviceJudge(again, device), goal).accuracy);
}

TEST_F(Learned, LearnsInEverySpace) {
  for (const auto* name : {"fbnet", "ofa-mbv3", "icpe"}) {
    const auto& space = **space::find_space(name);
    Samples samples{
        .space = &space,
        .designs = *space::sample_designs(space, {.seed = 2, .count = 60}),
        .features = {.names = {"spec:slow", "spec:small"}, .is_reference = {false, false}},
        .costs = {{.name = "latency_ms"}}};
    for (std::size_t d = 0; d < 5; ++d) {
      const double slow = 1 + static_cast<double>(d);
      samples.devices.push_back("d" + std::to_string(d));
      samples.features.values.insert(samples.features.values.end(),
                                     {slow, 1.0 / slow + 0.1 * slow});
      for (std::size_t i = 0; i < samples.designs.size(); ++i) {
        double sum = 0;
        for (const auto choice : std::as_const(samples.designs)[i]) sum += 1 + choice;
        samples.costs[0].values.push_back(slow * sum);
        if (d == 0) samples.accuracy.push_back(50 + sum);
      }
    }
    for (const auto method : {LearnMethod::supervised, LearnMethod::unsupervised}) {
      auto options = quick();
      options.method = method;
      options.effort = 0.01;
      const auto model = train(samples, options);
      ASSERT_TRUE(model) << name << ": " << model.error().message;
      const learned::DeviceJudge judge(*model,
                                       model->parts().device.read(samples.features.row(2)).value());
      const auto answer = learned::answer(judge, {.limits = {std::exp(judge.typical(0))}});
      EXPECT_TRUE(space.check(answer.design)) << name;
    }
  }
}

TEST_F(Learned, RefusesSamplesOfTooFewDevices) {
  const auto model = train(samples_of(2), quick());
  EXPECT_THAT(model.error().message, testing::HasSubstr("at least 3"));
}

}  // namespace
}  // namespace fleetfit::train
