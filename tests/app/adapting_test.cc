#include "fleetfit/app/adapting.h"

#include <gmock/gmock.h>

#include <optional>

#include "fleetfit/core/random.h"
#include "fleetfit/elastic/bundle.h"
#include "tests/adapt/small_supernet.h"
#include "tests/core/recording_progress.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::app {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kTrain = 400;  // a tenth of it is for validation
constexpr std::uint32_t kTest = 60;

/// A whole number as IDX files have it.
std::string extent(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

/// A small elastic model with random weights, and random images.
class AdaptBundle : public testing::Test {
 protected:
  AdaptBundle() {
    write_bundle({"0", "1", "2"});
    write_images(adapt::kSide);
    request_ = {.bundle = bundle_,
                .data = "idx:" + folder_.path().string(),
                .budget_ms = 1000,
                .pool = folder_.path() / "pool.json",
                .timing = {.rounds = 2, .round_ms = 0.1}};
  }

  void write_bundle(std::vector<std::string> classes) {
    const auto written = elastic::write_bundle(
        {.info = {.classes = std::move(classes)}, .models = {adapt::small_supernet(1)}}, bundle_);
    ASSERT_TRUE(written) << written.error().message;
  }

  void write_images(std::int64_t side) {
    core::Random random(3);
    const auto size = static_cast<std::uint32_t>(side);
    for (const auto& [name, count] : {std::pair{"train", kTrain}, std::pair{"t10k", kTest}}) {
      std::string images =
          std::string("\0\0\10\3", 4) + extent(count) + extent(size) + extent(size);
      std::string labels = std::string("\0\0\10\1", 4) + extent(count);
      for (std::uint32_t i = 0; i < count * size * size; ++i)
        images += static_cast<char>(random.below(256));
      for (std::uint32_t i = 0; i < count; ++i) labels += static_cast<char>(i % adapt::kClasses);
      folder_.file(std::string(name) + "-images-idx3-ubyte", images);
      folder_.file(std::string(name) + "-labels-idx1-ubyte", labels);
    }
  }

  Result<AdaptReport> adapt() {
    return adapt_bundle(*workplace_, request_, progress_, std::stop_token());
  }

  core::TemporaryFolder folder_;
  std::filesystem::path bundle_ = folder_.path() / "small.ffb";
  core::SystemClock clock_;
  core::RecordingProgress progress_;
  std::optional<Workplace> workplace_ = open_workplace("memory:", clock_).value();
  AdaptRequest request_;
};

TEST_F(AdaptBundle, WritesThePoolWithTheBestSubnet) {
  const auto report = adapt();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->best);
  EXPECT_EQ(report->searched_images, 40U) << "all that the validation part has";
  EXPECT_EQ(report->test_images, 60U);
  EXPECT_GT(report->evaluated, 10U);
  EXPECT_GT(report->reuse.saved_fraction, 0);
  const auto pool = adapt::read_pool(request_.pool);
  ASSERT_TRUE(pool) << pool.error().message;
  EXPECT_EQ(pool->best, report->best->subnet);
  EXPECT_EQ(pool->device, "local");
  EXPECT_EQ(pool->bundle_sha256, elastic::read_bundle(bundle_).value().manifest_sha256);
}

TEST_F(AdaptBundle, TakesEveryStrategyAndTail) {
  for (const std::string strategy : {"evolution", "annealing", "nearby-evolution"}) {
    request_.strategy = strategy;
    request_.tail = strategy == "evolution" ? "p95" : "median";
    request_.labels = strategy == "evolution" ? "original" : "data";
    const auto report = adapt();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->best) << strategy;
  }
}

TEST_F(AdaptBundle, TellsTheFastestWhereTheBudgetCannotBeKept) {
  request_.budget_ms = 1e-6;
  const auto report = adapt();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->best);
  EXPECT_FALSE(report->fastest.subnet.empty());
  EXPECT_GT(report->fastest.latency_ms, 1e-6);
  EXPECT_FALSE(std::filesystem::exists(request_.pool));
}

TEST_F(AdaptBundle, UsesATableAgainAndBendsThatOfAnotherDevice) {
  request_.save_table = folder_.path() / "table.json";
  ASSERT_TRUE(adapt());
  request_.save_table.clear();
  request_.table = folder_.path() / "table.json";
  EXPECT_EQ(adapt().value().table_from, "file");
  request_.table.clear();
  request_.proxy = folder_.path() / "table.json";
  const auto report = adapt();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->table_from, "proxy");
  EXPECT_TRUE(report->best);
}

TEST_F(AdaptBundle, RefusesDataThatDoesNotFit) {
  write_images(adapt::kSide + 1);
  EXPECT_THAT(adapt().error().message, HasSubstr("its images are 6x6 with 1 channel, the model"));
  write_images(adapt::kSide);
  write_bundle({"cat", "dog"});
  const auto report = adapt();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(report.error().message, HasSubstr("its 3 classes are not the 2"));
}

TEST_F(AdaptBundle, RefusesOptionsThatMakeNoSense) {
  const auto message = [&](auto change) {
    const auto before = request_;
    change(request_);
    const auto report = adapt();
    request_ = before;
    return report ? std::string() : report.error().message;
  };
  EXPECT_THAT(message([](AdaptRequest& r) { r.budget_ms = 0; }), HasSubstr("budget"));
  EXPECT_THAT(message([](AdaptRequest& r) { r.samples = 3; }), HasSubstr("samples"));
  EXPECT_THAT(message([](AdaptRequest& r) { r.strategy = "luck"; }), HasSubstr("strategy"));
  EXPECT_THAT(message([](AdaptRequest& r) { r.labels = "mine"; }), HasSubstr("labels"));
  EXPECT_THAT(message([](AdaptRequest& r) { r.tail = "fastest"; }), HasSubstr("tail"));
  EXPECT_THAT(message([](AdaptRequest& r) { r.reuse_memory = "much"; }), HasSubstr("memory"));
}

}  // namespace
}  // namespace fleetfit::app
