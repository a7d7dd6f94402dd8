#include "fleetfit/tune/training_energy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/measure/kernel_tree.h"

namespace fleetfit::tune {
namespace {

using measure::EnergySource;
using measure::KernelTree;

void put_counter(const KernelTree& tree, const std::string& microjoules) {
  const std::string zone = "sys/class/powercap/intel-rapl:0/";
  tree.put(zone + "name", "package-0");
  tree.put(zone + "energy_uj", microjoules);
  tree.put(zone + "max_energy_range_uj", "262143328850");
}

/// Seconds of CPU time since the start: at work, idle, and given to other machines.
void put_cpu_time(const KernelTree& tree, int busy_s, int idle_s, int steal_s) {
  const auto ticks = [](int seconds) { return std::to_string(seconds * ::sysconf(_SC_CLK_TCK)); };
  tree.put("proc/stat",
           "cpu  " + ticks(busy_s) + " 0 0 " + ticks(idle_s) + " 0 0 0 " + ticks(steal_s) + " 0 0");
}

TEST(TrainingMeter, GivesATrialItsShareOfWhatTheMachineTook) {
  const core::SystemClock clock;
  const KernelTree tree;
  put_counter(tree, "1000000");
  put_cpu_time(tree, 100, 50, 0);
  TrainingMeter meter(clock, {.root = tree.root()});
  meter.start();
  put_counter(tree, "41000000");    // 40 J
  put_cpu_time(tree, 110, 300, 7);  // 10 s of work
  const auto energy = meter.stop(2.5);
  EXPECT_EQ(energy.source, EnergySource::measured);
  EXPECT_NEAR(energy.joules, 10, 1e-9);
  EXPECT_EQ(energy.meter, "RAPL package-0");
}

TEST(TrainingMeter, ModelsByCpuTimeWithoutASensor) {
  const core::SystemClock clock;
  const KernelTree tree;
  TrainingMeter meter(clock, {.root = tree.root(), .watts_per_core = 4});
  meter.start();
  const auto energy = meter.stop(2.5);
  EXPECT_EQ(energy.source, EnergySource::modelled);
  EXPECT_DOUBLE_EQ(energy.joules, 10);
  EXPECT_NE(energy.meter.find("4 W"), std::string::npos);
}

TEST(TrainingMeter, ModelsWhatWasNotStarted) {
  const core::SystemClock clock;
  const KernelTree tree;
  put_counter(tree, "1000000");
  TrainingMeter meter(clock, {.root = tree.root()});
  EXPECT_EQ(meter.stop(1).source, EnergySource::modelled);
}

}  // namespace
}  // namespace fleetfit::tune
