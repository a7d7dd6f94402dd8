#include "fleetfit/measure/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

namespace fleetfit::measure {
namespace {

using core::JsonView;
using testing::ElementsAre;
using testing::HasSubstr;

Device small_board() {
  return {.name = "board",
          .runtime = "xnnpack",
          .runtime_info = {"fleetfit", "0.1.0", "g++ 12"},
          .threads = 2,
          .cores = {0, 1},
          .precision = Precision::int8,
          .limits = {.cpu_quota_percent = 50, .memory_bytes = 512 << 20},
          .hardware = {.architecture = "aarch64",
                       .cpu_model = "Cortex-A53",
                       .cores = 4,
                       .instruction_sets = {"asimd"},
                       .max_frequency_khz = 1'400'000}};
}

TEST(Fingerprint, DoesNotDependOnTheName) {
  auto renamed = small_board();
  renamed.name = "another";
  EXPECT_EQ(fingerprint(renamed), fingerprint(small_board()));
  EXPECT_EQ(fingerprint(renamed).size(), 64u);
}

// Whoever changes this changes the identity of every stored device.
TEST(Fingerprint, IsTheSameInEveryBuild) {
  EXPECT_EQ(fingerprint(Device{.name = "local"}),
            "6c6a59d70730f28722fdae1178db171a892570106d3a76b638b72bd1291fcead");
}

TEST(Fingerprint, ChangesWithEverythingElse) {
  const std::vector<std::function<void(Device&)>> changes = {
      [](Device& d) { d.runtime = "onednn"; },
      [](Device& d) { d.runtime_info.name = "x"; },
      [](Device& d) { d.runtime_info.version = "0.1.1"; },
      [](Device& d) { d.runtime_info.build = "clang"; },
      [](Device& d) { d.threads = 1; },
      [](Device& d) { d.cores = {0, 2}; },
      [](Device& d) { d.cores = {}; },
      [](Device& d) { d.precision = Precision::fp32; },
      [](Device& d) { d.limits.cpu_quota_percent = 51; },
      [](Device& d) { d.limits.cpu_quota_percent = std::nullopt; },
      [](Device& d) { d.limits.memory_bytes = 1 << 30; },
      [](Device& d) { d.limits.frequency_khz = 600'000; },
      [](Device& d) { d.hardware.architecture = "armv7l"; },
      [](Device& d) { d.hardware.cpu_model = "Cortex-A55"; },
      [](Device& d) { d.hardware.cores = 8; },
      [](Device& d) { d.hardware.instruction_sets = {"asimd", "asimddp"}; },
      [](Device& d) { d.hardware.max_frequency_khz = 1'500'000; },
      [](Device& d) { d.hardware.hypervisor = true; },
  };
  std::set<std::string> fingerprints = {fingerprint(small_board())};
  for (const auto& change : changes) {
    auto device = small_board();
    change(device);
    EXPECT_TRUE(fingerprints.insert(fingerprint(device)).second);
  }
}

TEST(DeviceJson, IsReadBackAsItWas) {
  for (const auto& device : {small_board(), Device{.name = "local"}}) {
    const auto json = to_json(device);
    const auto read = device_from_json(JsonView(json, "d.json"));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, device);
  }
}

TEST(DeviceJson, NamesTheFieldThatIsWrong) {
  const std::vector<std::pair<nlohmann::json, std::string>> cases = {
      {{{"threads", 2}}, "d.json: the field 'name' is missing"},
      {{{"name", "a b"}}, "d.json: name: \"a b\""},
      {{{"name", "a"}, {"runtime", "tpu"}}, "d.json: runtime: \"tpu\" is none of auto, xnnpack"},
      {{{"name", "a"}, {"runtime", "exec: "}}, "d.json: runtime"},
      {{{"name", "a"}, {"threads", 0}}, "d.json: threads: 0 is not in 1 to 1024"},
      {{{"name", "a"}, {"threads", 2.5}}, "d.json: threads: expected a whole number"},
      {{{"name", "a"}, {"cores", {1, 0}}}, "d.json: cores: [1, 0]"},
      {{{"name", "a"}, {"cores", {"x"}}}, "d.json: cores[0]"},
      {{{"name", "a"}, {"precision", "fp8"}}, "d.json: precision: \"fp8\""},
      {{{"name", "a"}, {"limits", {{"cpu_quota_percent", 0}}}}, "cpu_quota_percent: 0"},
      {{{"name", "a"}, {"limits", {{"memory_bytes", 5}}}}, "memory_bytes: 5 is less than 1 MiB"},
      {{{"name", "a"}, {"limits", {{"frequency_khz", -1}}}}, "frequency_khz: -1"},
      {{{"name", "a"}, {"limits", {{"memory", 5}}}}, "d.json: limits"},
      {{{"name", "a"}, {"format", 7}}, "format: 7 is not known"},
  };
  for (const auto& [json, message] : cases) {
    const auto read = device_from_json(JsonView(json, "d.json"));
    ASSERT_FALSE(read) << json;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(read.error().message, HasSubstr(message));
  }
}

TEST(CheckFits, ComparesTheDeviceWithTheMachine) {
  const Hardware machine{.cores = {0, 1, 2, 3},
                         .clusters = {{.cores = {0, 1, 2, 3},
                                       .min_frequency_khz = 600'000,
                                       .max_frequency_khz = 1'400'000}},
                         .memory_bytes = std::int64_t{1} << 30};
  auto device = small_board();
  EXPECT_TRUE(check_fits(device, machine));
  device.limits.cpu_quota_percent = 201;
  EXPECT_THAT(check_fits(device, machine).error().message,
              HasSubstr("cpu_quota_percent: 201 is more than the 200 of 2 cores"));
  device = small_board();
  device.cores = {3, 4};
  EXPECT_EQ(check_fits(device, machine).error().message,
            "cores: this machine has no core 4, only 0, 1, 2, 3");
  device = small_board();
  device.limits.memory_bytes = std::int64_t{2} << 30;
  EXPECT_THAT(check_fits(device, machine).error().message, HasSubstr("memory_bytes"));
  device = small_board();
  device.limits.frequency_khz = 500'000;
  EXPECT_THAT(check_fits(device, machine).error().message, HasSubstr("frequency_khz"));
}

TEST(ParseBytes, TakesTheUsualSuffixes) {
  EXPECT_EQ(*parse_bytes("4096"), 4096);
  EXPECT_EQ(*parse_bytes("64K"), 65536);
  EXPECT_EQ(*parse_bytes("512M"), 536870912);
  EXPECT_EQ(*parse_bytes("512MiB"), 536870912);
  EXPECT_EQ(*parse_bytes("1.5G"), 1610612736);
  EXPECT_EQ(*parse_bytes("2g"), 2147483648);
  EXPECT_EQ(*parse_bytes("1T"), 1099511627776);
}

TEST(ParseBytes, RefusesTheRest) {
  for (const auto* text :
       {"", "M", "-1", "0", "12Q", "1e9", "5 M", "nan", "inf", "99999999999T", "512Mx", "0x10"}) {
    const auto bytes = parse_bytes(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_THAT(bytes.error().message, HasSubstr(std::string("\"") + text + "\""));
  }
}

TEST(ParseCores, TakesNumbersAndRanges) {
  EXPECT_THAT(*parse_cores("0"), ElementsAre(0));
  EXPECT_THAT(*parse_cores("0,1-3"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(*parse_cores("6-7,2,2"), ElementsAre(2, 6, 7));
}

TEST(ParseCores, RefusesTheRest) {
  for (const auto* text : {"", ",", "1,", "3-1", "-1", "a", "1-", "0-99999", "1 2"}) {
    EXPECT_FALSE(parse_cores(text)) << text;
  }
}

}  // namespace
}  // namespace fleetfit::measure
