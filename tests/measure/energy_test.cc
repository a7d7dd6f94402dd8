#include "fleetfit/measure/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/core/fake_clock.h"
#include "tests/core/temporary_folder.h"
#include "tests/measure/kernel_tree.h"
#include "tests/shared_data.h"

namespace fleetfit::measure {
namespace {

using core::FakeClock;
using std::chrono::seconds;
using testing::HasSubstr;

void put_zone(const KernelTree& tree, const std::string& zone, std::string_view name,
              std::string_view energy_uj) {
  tree.put("sys/class/powercap/" + zone + "/name", name);
  tree.put("sys/class/powercap/" + zone + "/energy_uj", energy_uj);
  tree.put("sys/class/powercap/" + zone + "/max_energy_range_uj", "262143328850");
}

TEST(Rapl, SumsPackagesAndDoesNotCountTheirPartsTwice) {
  const KernelTree tree;
  put_zone(tree, "intel-rapl:0", "package-0", "1000000");
  put_zone(tree, "intel-rapl:0:0", "core", "500000");
  put_zone(tree, "intel-rapl:1", "package-1", "2000000");
  put_zone(tree, "intel-rapl:2", "psys", "9000000");
  put_zone(tree, "intel-rapl-mmio:0", "package-0", "1000000");
  tree.put("sys/class/powercap/intel-rapl/enabled", "1");
  const auto meter = open_rapl({.root = tree.root()});
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_EQ((*meter)->name(), "RAPL package-0, package-1");
  EXPECT_EQ((*meter)->source(), EnergySource::measured);
  ASSERT_TRUE((*meter)->start());
  put_zone(tree, "intel-rapl:0", "package-0", "1250000");
  put_zone(tree, "intel-rapl:0:0", "core", "600000");
  put_zone(tree, "intel-rapl:1", "package-1", "2050000");
  put_zone(tree, "intel-rapl:2", "psys", "9900000");
  EXPECT_DOUBLE_EQ((*meter)->stop().value(), 300);
}

TEST(Rapl, GoesOnWhenTheCounterStartsAgain) {
  const KernelTree tree;
  put_zone(tree, "intel-rapl:0", "package-0", "262143328000");
  const auto meter = open_rapl({.root = tree.root()}).value();
  ASSERT_TRUE(meter->start());
  put_zone(tree, "intel-rapl:0", "package-0", "1150");
  EXPECT_DOUBLE_EQ(meter->stop().value(), 2);
}

TEST(Rapl, MustBeStarted) {
  const KernelTree tree;
  put_zone(tree, "intel-rapl:0", "package-0", "1");
  EXPECT_FALSE(open_rapl({.root = tree.root()}).value()->stop());
}

TEST(Rapl, SaysThatItCannotBeReadAndWhy) {
  const KernelTree tree;
  // A folder cannot be read, not even by root, who may read any file.
  tree.put("sys/class/powercap/intel-rapl:0/energy_uj/x", "1");
  const auto meter = open_rapl({.root = tree.root()});
  ASSERT_FALSE(meter);
  EXPECT_THAT(meter.error().message, HasSubstr("RAPL cannot be read, it is for root alone"));
  EXPECT_THAT(meter.error().message, HasSubstr("energy_uj"));
}

TEST(Hwmon, CountsEnergyOfAnEnergySensor) {
  const KernelTree tree;
  const FakeClock clock;
  const std::string chip = "sys/class/hwmon/hwmon1/";
  tree.put(chip + "name", "amd_energy");
  tree.put(chip + "energy1_input", "10");
  tree.put(chip + "energy1_label", "Ecore000");
  tree.put(chip + "energy2_input", "5000000");
  tree.put(chip + "energy2_label", "Esocket0");
  const auto meter = open_hwmon(clock, {.root = tree.root()});
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_EQ((*meter)->name(), "hwmon amd_energy/Esocket0");
  ASSERT_TRUE((*meter)->start());
  tree.put(chip + "energy2_input", "5040000");
  EXPECT_DOUBLE_EQ((*meter)->stop().value(), 40);
}

// Samples are taken at the start, at the end, and in between by a thread that sees the fake clock
// stand still or already moved: with a constant power the result is the same.
TEST(Hwmon, IntegratesThePowerOfAnInaSensor) {
  const KernelTree tree;
  FakeClock clock;
  tree.put("sys/class/hwmon/hwmon0/name", "ina219");
  tree.put("sys/class/hwmon/hwmon0/power1_input", "2500000");
  tree.put("sys/class/hwmon/hwmon0/curr1_input", "500");
  tree.put("sys/class/hwmon/hwmon0/in1_input", "5000");
  const auto meter = open_hwmon(clock, {.root = tree.root()});
  ASSERT_TRUE(meter) << meter.error().message;
  ASSERT_TRUE((*meter)->start());
  clock.advance(seconds(4));
  EXPECT_DOUBLE_EQ((*meter)->stop().value(), 10'000);
}

TEST(Hwmon, MultipliesCurrentByVoltageAndTakesTheWholeInput) {
  const KernelTree tree;
  FakeClock clock;
  const std::string chip = "sys/class/hwmon/hwmon3/";
  tree.put(chip + "name", "ina3221");
  tree.put(chip + "in1_label", "VDD_IN");
  tree.put(chip + "in1_input", "5000");
  tree.put(chip + "curr1_input", "1200");
  tree.put(chip + "in2_label", "VDD_CPU_GPU_CV");
  tree.put(chip + "in2_input", "5000");
  tree.put(chip + "curr2_input", "400");
  tree.put(chip + "in4_input", "1");
  const auto meter = open_hwmon(clock, {.root = tree.root()});
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_EQ((*meter)->name(), "hwmon ina3221/VDD_IN");
  ASSERT_TRUE((*meter)->start());
  clock.advance(seconds(1));
  EXPECT_DOUBLE_EQ((*meter)->stop().value(), 6000);
}

TEST(Hwmon, DoesNotTakeAnotherChipsPowerForTheProcessors) {
  const KernelTree tree;
  const FakeClock clock;
  tree.put("sys/class/hwmon/hwmon0/name", "amdgpu");
  tree.put("sys/class/hwmon/hwmon0/power1_input", "9000000");
  EXPECT_EQ(open_hwmon(clock, {.root = tree.root()}).error().code, ErrorCode::not_found);
}

void put_battery(const KernelTree& tree, std::string_view status) {
  tree.put("sys/class/power_supply/AC/type", "Mains");
  tree.put("sys/class/power_supply/BAT0/type", "Battery");
  tree.put("sys/class/power_supply/BAT0/status", status);
}

TEST(Battery, TellsPowerWhileItIsDischarged) {
  const KernelTree tree;
  FakeClock clock;
  put_battery(tree, "Discharging");
  tree.put("sys/class/power_supply/BAT0/power_now", "8000000");
  const auto meter = open_battery(clock, {.root = tree.root()});
  ASSERT_TRUE(meter) << meter.error().message;
  ASSERT_TRUE((*meter)->start());
  clock.advance(seconds(2));
  EXPECT_DOUBLE_EQ((*meter)->stop().value(), 16'000);
}

TEST(Battery, MultipliesCurrentByVoltage) {
  const KernelTree tree;
  FakeClock clock;
  put_battery(tree, "Discharging");
  // Microamperes, negative as phones tell it, and microvolts.
  tree.put("sys/class/power_supply/BAT0/current_now", "-500000");
  tree.put("sys/class/power_supply/BAT0/voltage_now", "4000000");
  const auto meter = open_battery(clock, {.root = tree.root()}).value();
  ASSERT_TRUE(meter->start());
  clock.advance(seconds(3));
  EXPECT_NEAR(meter->stop().value(), 6000, 1e-6);
}

TEST(Battery, TellsNothingWhileItIsCharged) {
  const KernelTree tree;
  const FakeClock clock;
  put_battery(tree, "Charging");
  tree.put("sys/class/power_supply/BAT0/power_now", "8000000");
  const auto meter = open_battery(clock, {.root = tree.root()});
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().message, "the battery BAT0 is not being discharged (Charging)");
}

TEST(Battery, FailsIfThePlugIsPutInMeanwhile) {
  const KernelTree tree;
  FakeClock clock;
  put_battery(tree, "Discharging");
  tree.put("sys/class/power_supply/BAT0/power_now", "8000000");
  const auto meter = open_battery(clock, {.root = tree.root()}).value();
  ASSERT_TRUE(meter->start());
  put_battery(tree, "Charging");
  clock.advance(seconds(1));
  EXPECT_THAT(meter->stop().error().message, HasSubstr("is not being discharged"));
}

constexpr std::string_view kTable =
    "soc,run,soc_name,device,accuracy_note,cpu,freq_khz,coremark_iter_s,coremark_per_mhz,power_mw,"
    "energy_j,ulpmark_iter_mj,time_s\n"
    "little,main,L,Phone,Low,1,1000000,1,1,200,1,1,1\n"
    "little,main,L,Phone,Low,1,500000,1,1,80,1,1,1\n"
    "little,main,L,Phone,Low,4,2000000,1,1,900,1,1,1\n"
    "little,second,L,Phone,Low,1,500000,1,1,77,1,1,1\n"
    "other,main,O,,Low,1,500000,1,1,60,1,1,1\n";

TEST(PowerTable, InterpolatesBetweenItsFrequencies) {
  const core::TemporaryFolder folder;
  const auto table = read_power_table(folder.file("p.csv", kTable), {.soc = "little"});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->device, "Phone");
  EXPECT_EQ(table->points.size(), 3u);
  EXPECT_DOUBLE_EQ(table->power_mw(1, 500'000).value(), 80);
  EXPECT_DOUBLE_EQ(table->power_mw(1, 750'000).value(), 140);
  EXPECT_DOUBLE_EQ(table->power_mw(1, 100'000).value(), 80);
  EXPECT_DOUBLE_EQ(table->power_mw(1, 3'000'000).value(), 200);
  EXPECT_EQ(table->power_mw(2, 500'000).error().message,
            "the power table of little has no cluster 2, only 1, 4");
}

TEST(PowerTable, NamesWhatIsWrong) {
  const core::TemporaryFolder folder;
  const auto path = folder.file("p.csv", kTable);
  EXPECT_THAT(read_power_table(path).error().message, HasSubstr("holds several SoCs"));
  EXPECT_THAT(read_power_table(path, {.soc = "big"}).error().message,
              HasSubstr("has no power of \"big\" in run \"main\"; it has little, other"));
  const auto broken = folder.file("q.csv", "soc,run,device,cpu,freq_khz,power_mw\na,main,,1,x,5\n");
  EXPECT_THAT(read_power_table(broken).error().message, HasSubstr("q.csv:2:11: "));
  const auto negative =
      folder.file("n.csv", "soc,run,device,cpu,freq_khz,power_mw\na,main,,1,100,-5\n");
  EXPECT_THAT(read_power_table(negative).error().message, HasSubstr("is a negative power"));
  const auto lacking = folder.file("l.csv", "soc,run\na,main\n");
  EXPECT_THAT(read_power_table(lacking).error().message, HasSubstr("device"));
}

TEST(PowerTable, ReadsTheTableOfFreqbench) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "the public data is not here";
  const auto table = read_power_table(*data / "devices/freqbench_power_perf.csv", {.soc = "gs101"});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->device, "Google Pixel 6");
  EXPECT_EQ(table->points.size(), 43u);
  EXPECT_DOUBLE_EQ(table->power_mw(1, 300'000).value(), 56.124);
  EXPECT_DOUBLE_EQ(table->power_mw(6, 2'850'000).value(), 1516.8);
}

TEST(Modelled, IsPowerTimesCpuTimeOfTheProcess) {
  const core::TemporaryFolder folder;
  const KernelTree tree;
  const auto table = read_power_table(folder.file("p.csv", kTable), {.soc = "little"}).value();
  const auto ticks = ::sysconf(_SC_CLK_TCK);
  const auto stat = [&](long user, long system) {
    return "42 (my (odd) name) S 1 42 42 0 -1 4194560 100 0 0 0 " + std::to_string(user) + " " +
           std::to_string(system) + " 0 0 20 0 1 0 12345";
  };
  tree.put("proc/42/stat", stat(ticks, ticks));
  const auto meter =
      open_modelled({.table = table, .cluster = 4}, {.root = tree.root(), .pid = 42});
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_EQ((*meter)->source(), EnergySource::modelled);
  EXPECT_THAT((*meter)->name(), HasSubstr("cluster 4 at 2000000 kHz: 900 mW"));
  ASSERT_TRUE((*meter)->start());
  tree.put("proc/42/stat", stat(3 * ticks, 2 * ticks));
  EXPECT_DOUBLE_EQ((*meter)->stop().value(), 2700);
}

TEST(OpenEnergyMeter, PrefersASensorToAModel) {
  const core::TemporaryFolder folder;
  const KernelTree tree;
  const FakeClock clock;
  const PowerModel model{
      .table = read_power_table(folder.file("p.csv", kTable), {.soc = "little"}).value(),
      .cluster = 1};
  const auto modelled = open_energy_meter(clock, {.root = tree.root(), .model = model});
  ASSERT_TRUE(modelled.meter);
  EXPECT_EQ(modelled.meter->source(), EnergySource::modelled);
  EXPECT_THAT(modelled.reason, HasSubstr("energy is modelled by the power table of little"));
  EXPECT_THAT(modelled.reason, HasSubstr("this machine has no RAPL"));
  put_zone(tree, "intel-rapl:0", "package-0", "1");
  const auto measured = open_energy_meter(clock, {.root = tree.root(), .model = model});
  EXPECT_EQ(measured.meter->source(), EnergySource::measured);
  EXPECT_EQ(measured.reason, "energy is measured by RAPL package-0");
}

TEST(OpenEnergyMeter, InventsNothing) {
  const KernelTree tree;
  const FakeClock clock;
  const auto opened = open_energy_meter(clock, {.root = tree.root()});
  EXPECT_EQ(opened.meter, nullptr);
  EXPECT_THAT(opened.reason, HasSubstr("no energy: this machine has no RAPL"));
  EXPECT_THAT(opened.reason, HasSubstr("no power table was given"));
}

}  // namespace
}  // namespace fleetfit::measure
