#include "fleetfit/measure/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "measure/bandwidth.h"
#include "measure/probe_work.h"

namespace fleetfit::measure {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

/// Words 0, 1, 2, …
std::vector<Line> counting_lines(std::size_t count) {
  std::vector<Line> lines(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t word = 0; word < kWordsPerLine; ++word)
      lines[i].words[word] = i * kWordsPerLine + word;
  }
  return lines;
}

TEST(SumOf, AddsEveryWordOnce) {
  for (const std::size_t lines : {0U, 1U, 3U, 4U, 1003U}) {
    const std::uint64_t words = lines * kWordsPerLine;
    EXPECT_EQ(sum_of(counting_lines(lines)), words == 0 ? 0 : words * (words - 1) / 2) << lines;
  }
}

TEST(SumOf, WrapsAround) {
  std::vector<Line> lines(2);
  lines[0].words[0] = ~std::uint64_t{0};
  lines[1].words[7] = 3;
  EXPECT_EQ(sum_of(lines), 2);
}

TEST(CopyIncremented, WritesEveryWordPlusOne) {
  const auto from = counting_lines(37);
  std::vector<Line> to(37);
  copy_incremented(from, to);
  for (std::size_t i = 0; i < to.size(); ++i) {
    for (std::size_t word = 0; word < kWordsPerLine; ++word)
      ASSERT_EQ(to[i].words[word], i * kWordsPerLine + word + 1);
  }
}

TEST(BandwidthMeter, GivesASpeedOnAnyNumberOfThreads) {
  for (const int threads : {1, 3}) {
    for (const auto stream : {Stream::read, Stream::copy}) {
      BandwidthMeter meter({stream, 10'000, threads});
      const double speed = meter.sample_gb_per_s();
      EXPECT_TRUE(std::isfinite(speed) && speed > 0) << speed;
    }
  }
}

/// Four cores, each with 32 KiB, two and two with 1 MiB.
Hardware four_cores() {
  Hardware hardware{.cores = {0, 1, 2, 3}, .memory_bytes = std::int64_t{1} << 30};
  for (const int core : hardware.cores) {
    hardware.caches.push_back({1, "Data", 32 << 10, 64, {core}});
    hardware.caches.push_back({1, "Instruction", 16 << 10, 64, {core}});
  }
  hardware.caches.push_back({2, "Unified", 1 << 20, 64, {0, 1}});
  hardware.caches.push_back({2, "Unified", 1 << 20, 64, {2, 3}});
  return hardware;
}

std::vector<std::pair<std::string, std::size_t>> levels_of(const Hardware& hardware, int threads) {
  std::vector<std::pair<std::string, std::size_t>> list;
  for (const auto& level : memory_levels(hardware, threads))
    list.emplace_back(level.name, level.bytes_per_thread);
  return list;
}

TEST(MemoryLevels, GiveEachThreadHalfOfItsPartOfACache) {
  EXPECT_THAT(levels_of(four_cores(), 1),
              ElementsAre(std::pair("l1", 16 << 10), std::pair("l2", 512 << 10),
                          std::pair("memory", 4 << 20)));
  // Two threads share a second-level cache; memory: four times both of these, over four threads.
  EXPECT_THAT(levels_of(four_cores(), 4),
              ElementsAre(std::pair("l1", 16 << 10), std::pair("l2", 256 << 10),
                          std::pair("memory", 2 << 20)));
}

TEST(MemoryLevels, AreMemoryAloneWhereTheKernelTellsNoCache) {
  const Hardware hardware{.cores = {0}, .memory_bytes = std::int64_t{4} << 30};
  EXPECT_THAT(levels_of(hardware, 1), ElementsAre(std::pair("memory", 128 << 20)));
}

TEST(MemoryLevels, TakeAtMostAQuarterOfTheMemory) {
  auto hardware = four_cores();
  hardware.memory_bytes = 8 << 20;
  EXPECT_EQ(levels_of(hardware, 1).back(), std::pair("memory" + std::string(), 2UL << 20));
}

const OperatorClass& class_named(std::string_view name) {
  return *std::ranges::find(operator_classes(), name, &OperatorClass::name);
}

double amount(std::string_view name, Precision precision) {
  auto work = PreparedWork::prepare(class_named(name), precision, 1);
  return work ? work->amount() : -1;
}

TEST(PreparedWork, CountsTheOperatorsOfItsClassAlone) {
  constexpr double kElements = 64 * 56 * 56;
  EXPECT_EQ(amount("conv", Precision::fp32), 2 * 2 * kElements * 64 * 9);
  EXPECT_EQ(amount("conv", Precision::int8), 2 * 2 * kElements * 64 * 9);
  EXPECT_EQ(amount("fully_connected", Precision::fp32), 2 * 1280 * 1000);
  EXPECT_EQ(amount("add", Precision::fp32), 3 * 4 * kElements);
  EXPECT_EQ(amount("add", Precision::int8), 3 * kElements);
  EXPECT_EQ(amount("concat", Precision::int8), 4 * kElements);
  EXPECT_EQ(amount("transpose", Precision::fp32), 2 * 4 * kElements);
}

/// The names that docs/probe.md promises, for this machine's caches.
std::vector<std::string> documented_rates(const Hardware& hardware) {
  std::vector<std::string> names = {"peak_fp32_gflop_per_s", "peak_int8_gop_per_s"};
  for (const auto& level : memory_levels(hardware, 1)) {
    names.push_back(level.name + "_read_gb_per_s");
    names.push_back(level.name + "_copy_gb_per_s");
  }
  for (const char* name : {"conv", "pointwise_conv", "depthwise_conv", "fully_connected"}) {
    names.push_back(name + std::string("_fp32_gflop_per_s"));
    names.push_back(name + std::string("_int8_gop_per_s"));
  }
  for (const char* name :
       {"max_pool_fp32", "max_pool_int8", "global_average_pool_fp32", "global_average_pool_int8",
        "add_fp32", "add_int8", "relu_fp32", "sigmoid_fp32", "sigmoid_int8", "concat_fp32",
        "concat_int8", "transpose_fp32", "transpose_int8", "softmax_fp32"})
    names.push_back(name + std::string("_gb_per_s"));
  return names;
}

class ProbeDevice : public testing::Test {
 protected:
  Result<ProbeReport> probe(const ProbeOptions& options) {
    return probe_device(options, *progress_, clock_);
  }

  core::SystemClock clock_;
  std::unique_ptr<core::Progress> progress_ = core::make_silent_progress();
};

TEST_F(ProbeDevice, MeasuresEveryRateUnderItsName) {
  const auto report = probe({.seconds = 0.5});
  ASSERT_TRUE(report) << report.error().message;
  std::vector<std::string> names;
  for (const auto& rate : report->rates) {
    names.push_back(rate.name);
    EXPECT_TRUE(std::isfinite(rate.value) && rate.value > 0) << rate.name;
    EXPECT_TRUE(std::isfinite(rate.spread) && rate.spread >= 0) << rate.name;
    EXPECT_LE(rate.median, rate.best) << rate.name;
    EXPECT_GE(rate.runs, 8) << rate.name;
  }
  EXPECT_THAT(names, ElementsAreArray(documented_rates(report->hardware)));
}

TEST_F(ProbeDevice, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  const auto report = probe({.stop = stop.get_token()});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::cancelled);
}

TEST_F(ProbeDevice, RefusesNoThreadsAndNoTime) {
  EXPECT_EQ(probe({.threads = 0}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(probe({.seconds = 0}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(probe({.seconds = std::nan("")}).error().code, ErrorCode::invalid_input);
}

ProbeReport small_report() {
  return {.hardware = four_cores(),
          .threads = 2,
          .rates = {{.name = "peak_fp32_gflop_per_s", .unit = "GFLOP/s", .value = 12.5},
                    {.name = "memory_read_gb_per_s", .unit = "GB/s", .value = 3}}};
}

TEST(Features, AreFactsThenRates) {
  const std::vector<Feature> expected = {{"threads", 2},
                                         {"cores", 4},
                                         {"memory_bytes", 1 << 30},
                                         {"l1_bytes", 32 << 10},
                                         {"l2_bytes", 1 << 20},
                                         {"peak_fp32_gflop_per_s", 12.5},
                                         {"memory_read_gb_per_s", 3}};
  EXPECT_EQ(features(small_report()), expected);
}

TEST(ProbeReport, FindsARateByName) {
  EXPECT_EQ(small_report().value("memory_read_gb_per_s"), 3);
  EXPECT_EQ(small_report().value("l3_read_gb_per_s"), std::nullopt);
}

TEST(ProbeReport, IsWrittenWithItsFeatures) {
  const auto json = to_json(small_report());
  std::set<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"hardware", "threads", "kernels", "rates", "features",
                                         "conditions", "elapsed_s"}));
  EXPECT_EQ(json["features"]["peak_fp32_gflop_per_s"], 12.5);
  EXPECT_EQ(json["rates"][1]["unit"], "GB/s");
}

}  // namespace
}  // namespace fleetfit::measure
