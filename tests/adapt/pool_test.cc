#include "fleetfit/adapt/pool.h"

#include <gmock/gmock.h>

#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"

namespace fleetfit::adapt {
namespace {

using testing::HasSubstr;

SubnetPool two_entries() {
  return {.device = "local",
          .bundle_sha256 = "00ff",
          .budget_ms = 2.5,
          .best = "s1-o",
          .entries = {
              {.subnet = "s1-o", .latency_ms = 2, .relative = 1, .accuracy = 0.8, .measured = true},
              {.subnet = "o-o", .latency_ms = 3, .relative = 1.5, .accuracy = 0.9}}};
}

class PoolFile : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "pool.json"; }

  /// The error of a file that has `after` in the place of `before`.
  std::string error_with(std::string_view before, std::string_view after) {
    EXPECT_TRUE(write_pool(two_entries(), file()));
    auto text = core::read_file(file()).value();
    const auto place = text.find(before);
    EXPECT_NE(place, std::string::npos) << text;
    text.replace(place, before.size(), after);
    EXPECT_TRUE(core::write_file(file(), text));
    const auto read = read_pool(file());
    EXPECT_FALSE(read);
    if (read) return "";
    EXPECT_EQ(read.error().code, ErrorCode::invalid_input);
    return read.error().message;
  }

  core::ScratchFolder folder_ = core::ScratchFolder::create().value();
};

TEST_F(PoolFile, ReadsWhatWasWritten) {
  ASSERT_TRUE(write_pool(two_entries(), file()));
  const auto pool = read_pool(file());
  ASSERT_TRUE(pool) << pool.error().message;
  EXPECT_EQ(pool->device, "local");
  EXPECT_EQ(pool->bundle_sha256, "00ff");
  EXPECT_EQ(pool->budget_ms, 2.5);
  EXPECT_EQ(pool->best, "s1-o");
  ASSERT_EQ(pool->entries.size(), 2U);
  EXPECT_EQ(pool->entries[0].subnet, "s1-o");
  EXPECT_TRUE(pool->entries[0].measured);
  EXPECT_EQ(pool->entries[1].latency_ms, 3);
  EXPECT_EQ(pool->entries[1].relative, 1.5);
  EXPECT_EQ(pool->entries[1].accuracy, 0.9);
  EXPECT_FALSE(pool->entries[1].measured);
}

TEST_F(PoolFile, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(error_with("fleetfit-pool", "something"), HasSubstr("format"));
  EXPECT_THAT(error_with("\"version\": 1", "\"version\": 2"), HasSubstr("version"));
  EXPECT_THAT(error_with("\"budget_ms\": 2.5", "\"budget_ms\": 0"), HasSubstr("budget_ms"));
  EXPECT_THAT(error_with("\"accuracy\": 0.9", "\"accuracy\": 1.9"),
              HasSubstr("entries[1].accuracy"));
  EXPECT_THAT(error_with("\"latency_ms\": 3.0", "\"latency_ms\": \"3\""),
              HasSubstr("entries[1].latency_ms"));
  EXPECT_THAT(error_with("\"best\": \"s1-o\"", "\"best\": \"s2-o\""), HasSubstr("best"));
}

TEST_F(PoolFile, RefusesEntriesThatAreOfNoUse) {
  EXPECT_THAT(error_with("\"latency_ms\": 3.0", "\"latency_ms\": 1.0"), HasSubstr("order"));
  EXPECT_THAT(error_with("\"accuracy\": 0.9", "\"accuracy\": 0.8"), HasSubstr("no use"));
}

TEST_F(PoolFile, IsNotFoundUnderAnotherName) {
  const auto read = read_pool(folder_.path() / "nowhere.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::not_found);
}

std::vector<JudgedSubnet> judged() {
  return {{.subnet = "slow", .latency_ms = 9, .measured = true, .choice = 0.9, .accuracy = 0.91},
          {.subnet = "useless", .latency_ms = 6, .choice = 0.85, .accuracy = 0.8},
          {.subnet = "chosen", .latency_ms = 5, .choice = 0.88, .accuracy = 0.86},
          {.subnet = "lucky", .latency_ms = 4, .choice = 0.84, .accuracy = 0.87},
          {.subnet = "quick", .latency_ms = 2, .choice = 0.7, .accuracy = 0.72}};
}

TEST(Pool, BestIsTheOneWithTheHighestScoreWithinTheBudget) {
  EXPECT_EQ(choose_best(judged(), 7), 2U);
  EXPECT_EQ(choose_best(judged(), 9), 0U);
  EXPECT_EQ(choose_best(judged(), 4.5), 3U);
  EXPECT_EQ(choose_best(judged(), 1), std::nullopt);
}

TEST(Pool, HoldsTheBestAndWhatIsQuickerOrMoreAccurate) {
  const auto entries = pool_entries(judged(), 2);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].subnet, "quick");
  EXPECT_EQ(entries[0].relative, 0.4);
  EXPECT_EQ(entries[1].subnet, "chosen");
  EXPECT_EQ(entries[1].relative, 1);
  EXPECT_EQ(entries[2].subnet, "slow");
  EXPECT_TRUE(entries[2].measured);
}

}  // namespace
}  // namespace fleetfit::adapt
