#include "fleetfit/measure/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fleetfit/core/random.h"
#include "tests/core/fake_clock.h"
#include "tests/core/temporary_folder.h"
#include "tests/measure/fake_runtime.h"

namespace fleetfit::measure {
namespace {

using core::FakeClock;
using core::Random;
using testing::Contains;
using testing::HasSubstr;

class MeasureModel : public testing::Test {
 protected:
  Measurement measure(FakeRuntime& runtime, const Protocol& protocol = {},
                      EnergyMeter* energy = nullptr) {
    return measure_model({.runtime = runtime, .model = "m.onnx", .energy = energy}, protocol,
                         {.clock = clock, .root = empty.path()});
  }

  // Milliseconds around `center` with a relative deviation.
  FakeRuntime::TimeOf noisy(double center, double deviation) {
    return [this, center, deviation](int) { return center * (1 + deviation * random.normal()); };
  }

  FakeClock clock;
  Random random{1};
  core::TemporaryFolder empty;
};

TEST_F(MeasureModel, SettlesOnASteadyRuntime) {
  FakeRuntime runtime(clock, noisy(10, 0.01));
  const auto result = measure(runtime);
  EXPECT_EQ(result.status, MeasurementStatus::ok) << result.reason;
  EXPECT_EQ(result.reason, "");
  EXPECT_NEAR(result.latency->median_ms, 10, 0.1);
  EXPECT_NEAR(result.latency->mean_ms, 10, 0.1);
  // The quantile 0.9 of a normal distribution is 1.28 deviations above its center.
  EXPECT_NEAR(result.latency->p90_ms, 10.128, 0.05);
  EXPECT_LE(result.latency->ci95_ms.low, result.latency->median_ms);
  EXPECT_GE(result.latency->ci95_ms.high, result.latency->median_ms);
  EXPECT_GE(result.runs, 10);
  EXPECT_EQ(result.runs + circumstances_of(result).warmup_runs, runtime.runs());
  EXPECT_EQ(result.kernel_choices, "chosen");
  EXPECT_FALSE(result.overhead_ms);
  EXPECT_FALSE(result.energy);
  EXPECT_EQ(runtime.unloads(), 1);
}

TEST_F(MeasureModel, MakesRequestsOfTheTimeThatTheProtocolAsks) {
  FakeRuntime runtime(clock, [](int) { return 2.0; });
  measure(runtime, {.request_ms = 50});
  EXPECT_EQ(runtime.requests().front(), 1);
  EXPECT_EQ(runtime.requests().back(), 25);
}

TEST_F(MeasureModel, RestsBeforeEachRequestThatIsMeasured) {
  FakeRuntime runtime(clock, [](int) { return 2.0; });
  const core::SystemClock wall;
  const auto start = wall.now();
  const auto result = measure(runtime, {.min_time_s = 0, .request_ms = 4, .pause_ms = 20});
  EXPECT_EQ(result.runs % 2, 0);
  EXPECT_GE(wall.now() - start, result.runs / 2 * std::chrono::milliseconds(20));
}

TEST_F(MeasureModel, LeavesASlowWarmUpOut) {
  // Starts four times as slow and comes within 1 % after about 170 runs, 1.4 s.
  FakeRuntime runtime(clock, [](int run) { return 5 * (1 + 3 * std::exp(-run / 30.0)); });
  const auto result = measure(runtime);
  EXPECT_EQ(result.status, MeasurementStatus::ok) << result.reason;
  EXPECT_NEAR(result.latency->median_ms, 5, 0.1);
  EXPECT_GE(circumstances_of(result).warmup_runs, 100);
}

TEST_F(MeasureModel, LeavesColdRunsOutHoweverLittleTimeThereIs) {
  // As ONNX Runtime does: two runs that take memory, and then those that count.
  FakeRuntime runtime(clock, [](int run) { return run < 2 ? 80.0 : 40.0; });
  const auto result = measure(runtime, {.min_time_s = 0.05, .max_time_s = 0.1, .sessions = 8});
  EXPECT_EQ(circumstances_of(result).warmup_runs, 3);
  EXPECT_EQ(result.runs, 3);
  EXPECT_DOUBLE_EQ(result.latency->mean_ms, 40);
}

TEST_F(MeasureModel, WarmsASlowModelUpOnceWhereItsRunsTakeLongerThanAnyWarmUp) {
  FakeRuntime runtime(clock, [](int) { return 3000.0; });
  const auto result = measure(runtime, {.max_time_s = 5});
  EXPECT_EQ(circumstances_of(result).warmup_runs, 1);
  EXPECT_EQ(result.runs, 1);
}

TEST_F(MeasureModel, ProfilesSeveralRunsOfASlowModelAtOnce) {
  FakeRuntime runtime(clock, [](int) { return 200.0; });
  runtime.operators = {{.name = "conv", .type = "Conv", .kernel = "", .ms = 1}};
  measure(runtime, {.max_time_s = 1, .operators = true});
  EXPECT_EQ(runtime.requests().back(), 3);
}

TEST_F(MeasureModel, TellsBothHalvesOfADriftingRuntimeApart) {
  // One percent slower with each second.
  FakeRuntime runtime(clock, [this](int) {
    const double now_s = std::chrono::duration<double>(clock.now()).count();
    return 10 * (1 + 0.01 * now_s) * (1 + 0.05 * random.normal());
  });
  const auto result = measure(runtime, {.target = 0.004, .min_time_s = 20, .max_time_s = 30});
  EXPECT_EQ(result.status, MeasurementStatus::unstable);
  EXPECT_GT(circumstances_of(result).drift.relative, 0.05);
  EXPECT_TRUE(circumstances_of(result).drift.significant);
  EXPECT_TRUE(result.latency);
}

TEST_F(MeasureModel, SaysByHowMuchANoisyRuntimeMissedTheTarget) {
  FakeRuntime runtime(clock, noisy(100, 0.2));
  const auto result = measure(runtime, {.max_time_s = 5});
  EXPECT_EQ(result.status, MeasurementStatus::unstable);
  EXPECT_THAT(result.reason, HasSubstr("the 95 % interval of the median is ±"));
  EXPECT_THAT(result.reason, HasSubstr("the target ±2 %"));
  EXPECT_GE(clock.now(), std::chrono::seconds(5));
  EXPECT_LE(clock.now(), std::chrono::seconds(6));
}

TEST_F(MeasureModel, GoesOnUntilANoisyRuntimeHasSettled) {
  FakeRuntime quiet(clock, noisy(1, 0.01));
  FakeRuntime loud(clock, noisy(1, 0.25));
  const auto few = measure(quiet);
  const auto many = measure(loud);
  EXPECT_EQ(few.status, MeasurementStatus::ok) << few.reason;
  EXPECT_EQ(many.status, MeasurementStatus::ok) << many.reason;
  // 1.25 * 0.25 * 1.96 / sqrt(n) = 0.02 for n = 940.
  EXPECT_GT(many.runs, 600);
  EXPECT_GT(many.runs, few.runs);
  EXPECT_NEAR(many.latency->median_ms, 1, 0.04);
}

TEST_F(MeasureModel, GetsTheMeanOfAThrottledProcessRight) {
  // 25 % of a core: each run needs 10 ms of CPU time, each period of 100 ms has 25 ms of it.
  double cpu_ms = 0;
  FakeRuntime runtime(clock, [&cpu_ms](int) {
    const auto wall = [](double cpu) { return std::floor(cpu / 25) * 100 + std::fmod(cpu, 25); };
    const double start = wall(cpu_ms);
    cpu_ms += 10;
    return wall(cpu_ms) - start;
  });
  const auto result = measure(runtime);
  EXPECT_EQ(result.status, MeasurementStatus::ok) << result.reason;
  EXPECT_TRUE(circumstances_of(result).bimodal);
  EXPECT_NEAR(result.latency->mean_ms, 40, 2);
  EXPECT_DOUBLE_EQ(result.latency->median_ms, 10);
  EXPECT_THAT(circumstances_of(result).notes, Contains(HasSubstr("two groups")));
  EXPECT_GE(clock.now(), std::chrono::seconds(3));
}

TEST_F(MeasureModel, IsUnstableIfTheMedianLiesBetweenTwoGroups) {
  FakeRuntime runtime(clock, [this](int) { return random.chance(0.5) ? 10.0 : 20.0; });
  const auto result = measure(runtime, {.max_time_s = 20});
  EXPECT_EQ(result.status, MeasurementStatus::unstable);
  EXPECT_TRUE(circumstances_of(result).bimodal);
  EXPECT_THAT(result.reason, HasSubstr("the mean has settled at 1"));
}

TEST_F(MeasureModel, CountsOutliersAndKeepsThem) {
  FakeRuntime runtime(clock, [](int run) { return run % 50 == 7 ? 100.0 : 10 + 0.01 * (run % 3); });
  const auto result = measure(runtime, {.min_runs = 200});
  EXPECT_EQ(result.status, MeasurementStatus::ok) << result.reason;
  EXPECT_NEAR(static_cast<double>(circumstances_of(result).outliers),
              static_cast<double>(result.runs) / 50, 1);
  EXPECT_GT(result.latency->mean_ms, 11);
  EXPECT_LT(result.latency->median_ms, 10.1);
}

TEST_F(MeasureModel, RecordsTheReasonOfARuntimeThatDies) {
  for (const int at : {0, 30, 60}) {
    FakeRuntime runtime(clock, [](int) { return 10.0; });
    runtime.fails_at = at;
    const auto result = measure(runtime);
    EXPECT_EQ(result.status, MeasurementStatus::failed);
    EXPECT_EQ(result.reason, "the runtime died of signal 9");
    EXPECT_FALSE(result.latency);
  }
}

TEST_F(MeasureModel, RecordsTheReasonOfAModelThatCannotBeLoaded) {
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  runtime.load_error = Error{ErrorCode::unsupported, "operators Foo, Bar are not known"};
  const auto result = measure(runtime);
  EXPECT_EQ(result.status, MeasurementStatus::failed);
  EXPECT_EQ(result.reason, "operators Foo, Bar are not known");
  EXPECT_EQ(runtime.runs(), 0);
  EXPECT_EQ(runtime.unloads(), 0);
}

TEST_F(MeasureModel, RefusesTimesThatCannotBe) {
  FakeRuntime negative(clock, [](int run) { return run < 20 ? 10.0 : -1.0; });
  EXPECT_EQ(measure(negative).reason, "the runtime told that a run took -1 ms");
  FakeRuntime forgetful(clock, [](int) { return 10.0; });
  forgetful.loses_a_time = true;
  EXPECT_EQ(measure(forgetful).reason, "the runtime told 0 times for 1 runs");
}

TEST_F(MeasureModel, StopsAfterTheFirstRequestOfARunThatTakesForEver) {
  FakeRuntime runtime(clock, [](int) { return 60'000.0; });
  const auto result = measure(runtime, {.max_time_s = 30});
  EXPECT_EQ(result.status, MeasurementStatus::unstable);
  EXPECT_EQ(result.runs, 1);
  EXPECT_THAT(result.reason, HasSubstr("after 1 runs in 60 s there are fewer than 10 runs"));
}

TEST_F(MeasureModel, RecordsThatTheUserStoppedIt) {
  std::stop_source stop;
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  runtime.before_run = [&](int run) {
    if (run == 40) stop.request_stop();
  };
  const auto result = measure_model({.runtime = runtime, .model = "m.onnx"}, {},
                                    {.clock = clock, .stop = stop.get_token()});
  EXPECT_EQ(result.status, MeasurementStatus::failed);
  EXPECT_EQ(result.reason, "cancelled");
  EXPECT_LE(runtime.runs(), 50);
  EXPECT_EQ(runtime.unloads(), 1);
}

TEST_F(MeasureModel, NamesTheFieldOfAProtocolThatCannotBe) {
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  const auto result = measure(runtime, {.min_runs = 3});
  EXPECT_EQ(result.status, MeasurementStatus::failed);
  EXPECT_THAT(result.reason, HasSubstr("protocol: min_runs is 3, not from 6 to"));
}

TEST_F(MeasureModel, AddsOperatorsAndOverheadUpToTheMedian) {
  FakeRuntime runtime(clock, noisy(10, 0.02));
  runtime.operators = {{"conv", "Conv", "k", 0.6}, {"fc", "Gemm", "", 0.3}};
  runtime.profiling_cost = 1.04;
  const auto result = measure(runtime, {.operators = true});
  EXPECT_EQ(result.status, MeasurementStatus::ok) << result.reason;
  ASSERT_EQ(result.operators.size(), 2u);
  EXPECT_EQ(result.operators[0].name, "conv");
  EXPECT_NEAR(result.operators[0].ms, 6.24, 0.1);
  EXPECT_NEAR(result.operators[1].ms, 3.12, 0.1);
  // Not 1.04: of what profiling adds between the operators nothing is the network's.
  EXPECT_NEAR(*result.overhead_ms, 0.64, 0.15);
  const double whole = result.operators[0].ms + result.operators[1].ms + *result.overhead_ms;
  EXPECT_NEAR(whole, result.latency->median_ms, 1e-9);
  EXPECT_TRUE(circumstances_of(result).notes.empty());
}

TEST_F(MeasureModel, KeepsDisturbedRequestsOutOfTheOperators) {
  // Every 40th run is hit by something that takes ten times as long: one request in eight.
  FakeRuntime runtime(clock, [](int run) { return run % 40 == 5 ? 100.0 : 10.0; });
  runtime.operators = {{"conv", "Conv", "", 0.9}};
  const auto result = measure(runtime, {.min_time_s = 3, .operators = true});
  EXPECT_NEAR(result.operators[0].ms, 9, 0.01);
  EXPECT_NEAR(*result.overhead_ms, 1, 0.01);
}

TEST_F(MeasureModel, SaysWhenProfilingChangesTheTimes) {
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  runtime.operators = {{"conv", "Conv", "", 0.9}};
  runtime.profiling_cost = 1.5;
  const auto result = measure(runtime, {.operators = true});
  EXPECT_EQ(result.status, MeasurementStatus::ok);
  EXPECT_THAT(
      circumstances_of(result).notes,
      Contains(HasSubstr("operators and overhead add up to 13.5 ms, +35 % from the median")));
}

TEST_F(MeasureModel, TakesOperatorsInAnyOrder) {
  FakeRuntime runtime(clock, noisy(10, 0.02));
  runtime.operators = {{"conv", "Conv", "", 0.6}, {"fc", "Gemm", "", 0.3}, {"fc", "Gemm", "", 0.1}};
  int requests = 0;
  runtime.change_operators = [&](std::vector<OperatorTime>& operators) {
    if (requests++ % 2 == 1) std::ranges::rotate(operators, operators.begin() + 1);
  };
  const auto result = measure(runtime, {.operators = true});
  ASSERT_EQ(result.operators.size(), 3u);
  EXPECT_EQ(result.operators[0].name, "conv");
  EXPECT_NEAR(result.operators[0].ms / result.operators[1].ms, 2, 0.05);
  EXPECT_NEAR(result.operators[1].ms / result.operators[2].ms, 3, 0.05);
}

TEST_F(MeasureModel, FailsWhenOperatorsChange) {
  FakeRuntime runtime(clock, noisy(10, 0.02));
  runtime.operators = {{"conv", "Conv", "", 0.6}, {"fc", "Gemm", "", 0.3}};
  int requests = 0;
  runtime.change_operators = [&](std::vector<OperatorTime>& operators) {
    if (requests++ == 2) operators[0].name = "add";
  };
  const auto result = measure(runtime, {.operators = true});
  EXPECT_EQ(result.status, MeasurementStatus::failed);
  EXPECT_EQ(result.reason, "the runtime told of operator add in one run and not in another");
}

TEST_F(MeasureModel, SaysWhenARuntimeTellsNoOperators) {
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  const auto result = measure(runtime, {.operators = true});
  EXPECT_EQ(result.status, MeasurementStatus::ok);
  EXPECT_THAT(circumstances_of(result).notes, Contains("the runtime tells no times of operators"));
}

// Two watts, by the fake clock.
class FakeMeter final : public EnergyMeter {
 public:
  explicit FakeMeter(FakeClock& clock) : clock_(clock) {}
  bool broken = false;

  std::string name() const override { return "fake"; }
  EnergySource source() const override { return EnergySource::modelled; }
  Status start() override {
    start_ = clock_.now();
    return {};
  }
  Result<double> stop() override {
    if (broken) return fail(ErrorCode::io, "the sensor is gone");
    return 2000 * std::chrono::duration<double>(clock_.now() - start_).count();
  }

 private:
  FakeClock& clock_;
  std::chrono::nanoseconds start_{};
};

TEST_F(MeasureModel, TellsTheEnergyOfOneRunAndItsSource) {
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  FakeMeter meter(clock);
  const auto result = measure(runtime, {}, &meter);
  ASSERT_TRUE(result.energy);
  EXPECT_NEAR(result.energy->mj, 20, 1e-6);
  EXPECT_EQ(result.energy->source, EnergySource::modelled);
  EXPECT_EQ(result.energy->meter, "fake");
}

TEST_F(MeasureModel, HasNoEnergyIfTheMeterFails) {
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  FakeMeter meter(clock);
  meter.broken = true;
  const auto result = measure(runtime, {}, &meter);
  EXPECT_EQ(result.status, MeasurementStatus::ok);
  EXPECT_FALSE(result.energy);
  EXPECT_THAT(circumstances_of(result).notes,
              testing::ElementsAre("no energy: the sensor is gone"));
}

TEST_F(MeasureModel, RecordsWhatElseTheMachineDid) {
  const auto root = empty.path();
  std::filesystem::create_directories(root / "proc/sys/kernel");
  std::filesystem::create_directories(root / "sys/devices/system/cpu/cpu0/cpufreq");
  empty.file("proc/loadavg", "0.50 0.40 0.30 1/90 1234\n");
  empty.file("proc/stat", "cpu  100 0 50 800 0 0 0 50 0 0\ncpu0 100 0 50 800 0 0 0 50 0 0\n");
  empty.file("proc/sys/kernel/osrelease", "6.1.0\n");
  empty.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n");
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  runtime.before_run = [&](int run) {
    if (run != 30) return;
    empty.file("proc/loadavg", "1.50 0.40 0.30 1/90 1234\n");
    empty.file("proc/stat", "cpu  170 0 60 810 0 0 0 60 0 0\n");
    empty.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1200000\n");
  };
  const auto result = measure(runtime);
  EXPECT_EQ(circumstances_of(result).conditions.load_before, 0.5);
  EXPECT_EQ(circumstances_of(result).conditions.load_after, 1.5);
  EXPECT_EQ(circumstances_of(result).conditions.frequency_khz_before, 2'400'000);
  EXPECT_EQ(circumstances_of(result).conditions.frequency_khz_after, 1'200'000);
  // 10 of 100 ticks.
  EXPECT_DOUBLE_EQ(*circumstances_of(result).conditions.steal_share, 0.1);
  EXPECT_EQ(circumstances_of(result).conditions.kernel, "6.1.0");
  EXPECT_THAT(circumstances_of(result).notes,
              Contains("the hypervisor gave 10 % of the CPU time to others"));
}

TEST_F(MeasureModel, TellsTheMostMemoryOfAllRequests) {
  FakeRuntime runtime(clock, [](int) { return 100.0; });
  const auto result = measure(runtime);
  EXPECT_EQ(result.peak_memory_bytes, 1000 + runtime.runs() - 1);
}

class MeasureInterleaved : public MeasureModel {
 protected:
  // Slow phases of the whole machine: up to twice as slow, in waves of five seconds.
  double machine() const {
    const double now_s = std::chrono::duration<double>(clock.now()).count();
    return 1.5 + 0.5 * std::sin(now_s * 2 * 3.14159 / 5);
  }
};

TEST_F(MeasureInterleaved, FindsTheRatioThoughTheMachineChangesItsSpeed) {
  FakeRuntime first(clock, [this](int) { return 10 * machine() * (1 + 0.01 * random.normal()); });
  FakeRuntime second(clock, [this](int) { return 8 * machine() * (1 + 0.01 * random.normal()); });
  const std::vector<Subject> subjects = {{.runtime = first, .model = "a.onnx"},
                                         {.runtime = second, .model = "a.onnx"}};
  const auto result = measure_interleaved(subjects, {.max_time_s = 10}, {.clock = clock});
  ASSERT_EQ(result.against_first.size(), 2u);
  EXPECT_EQ(result.against_first[0].ratio, 1);
  EXPECT_NEAR(result.against_first[1].ratio, 0.8, 0.02);
  EXPECT_LE(result.against_first[1].ci95.low, 0.8);
  EXPECT_GE(result.against_first[1].ci95.high, 0.8);
  EXPECT_LT(result.against_first[1].ci95.high - result.against_first[1].ci95.low, 0.05);
}

TEST_F(MeasureInterleaved, RunsTheSubjectsInTurnsAndInAlternatingOrder) {
  std::string order;
  FakeRuntime a(clock, [](int) { return 50.0; });
  FakeRuntime b(clock, [](int) { return 50.0; });
  a.before_run = [&](int) { order += 'a'; };
  b.before_run = [&](int) { order += 'b'; };
  const std::vector<Subject> subjects = {{.runtime = a}, {.runtime = b}};
  measure_interleaved(subjects, {}, {.clock = clock});
  // Four requests each to warm up, then rounds.
  EXPECT_EQ(order.substr(0, 16), "aaaabbbbabbaabba");
  EXPECT_EQ(a.runs(), b.runs());
}

TEST_F(MeasureInterleaved, MeasuresTheOthersIfOneFails) {
  FakeRuntime good(clock, [](int) { return 10.0; });
  FakeRuntime bad(clock, [](int) { return 10.0; });
  bad.fails_at = 30;
  const std::vector<Subject> subjects = {{.runtime = good}, {.runtime = bad}};
  const auto result = measure_interleaved(subjects, {}, {.clock = clock});
  EXPECT_EQ(result.measurements[0].status, MeasurementStatus::ok);
  EXPECT_EQ(result.measurements[1].status, MeasurementStatus::failed);
  EXPECT_EQ(result.against_first[1].rounds, 0);
}

TEST_F(MeasureInterleaved, RefusesTwoModelsOnOneRuntime) {
  FakeRuntime runtime(clock, [](int) { return 10.0; });
  const std::vector<Subject> subjects = {{.runtime = runtime}, {.runtime = runtime}};
  const auto result = measure_interleaved(subjects, {}, {.clock = clock});
  for (const auto& measurement : result.measurements) {
    EXPECT_EQ(measurement.reason, "two models cannot be measured in turns on one runtime");
  }
  EXPECT_EQ(runtime.runs(), 0);
}

TEST_F(MeasureInterleaved, HasNothingToSayOfNoSubjects) {
  const auto result = measure_interleaved({}, {}, {.clock = clock});
  EXPECT_TRUE(result.measurements.empty());
}

TEST(Assess, NamesTheDrift) {
  std::vector<double> run_ms;
  for (int i = 0; i < 200; ++i) run_ms.push_back((i < 100 ? 10.0 : 11.0) + 0.001 * (i * 7 % 5));
  const auto assessment = assess(run_ms, 2, {});
  EXPECT_FALSE(assessment.settled);
  EXPECT_EQ(assessment.problem,
            "after 200 runs in 2 s the second half is 10 % slower than the first");
}

TEST(Assess, WantsMoreRunsIfNeighboursResembleEachOther) {
  // Phases of 50 runs, alternately 10 and 10.1 ms: within the target, but seen only twice each.
  std::vector<double> run_ms;
  for (int i = 0; i < 200; ++i) run_ms.push_back(i / 50 % 2 == 0 ? 10 : 10.1);
  const auto assessment = assess(run_ms, 2, {});
  EXPECT_FALSE(assessment.settled);
  EXPECT_THAT(assessment.problem, HasSubstr("runs would, 10 are needed"));
}

// Two sessions of the same truth agree within their intervals as often as they promise.
TEST_F(MeasureModel, AgreesWithItselfOnAMachineWithSlowPhases) {
  int agreed = 0;
  constexpr int kPairs = 100;
  for (int i = 0; i < kPairs; ++i) {
    std::vector<Measurement> pair;
    for (int j = 0; j < 2; ++j) {
      double phase = 0;
      FakeRuntime runtime(clock, [&](int) {
        phase = 0.95 * phase + 0.31 * random.normal();
        return 10 * (1 + 0.05 * phase);
      });
      pair.push_back(measure(runtime));
    }
    const auto& a = pair[0].latency->ci95_ms;
    const auto& b = pair[1].latency->ci95_ms;
    const bool both =
        pair[0].status == MeasurementStatus::ok && pair[1].status == MeasurementStatus::ok;
    agreed += !both || (a.low <= b.high && b.low <= a.high) ? 1 : 0;
  }
  EXPECT_GE(agreed, 90);
}

}  // namespace
}  // namespace fleetfit::measure
