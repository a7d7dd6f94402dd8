#include "agent/spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/core/file.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::agent {
namespace {

using testing::ElementsAre;
using testing::Field;

NewEvent event(std::string body = R"({"message":"m"})") {
  return {.time = "2026-11-16T08:00:00.000Z", .kind = "log", .job = 3, .body = std::move(body)};
}

std::vector<std::int64_t> numbers(Spool& spool) {
  std::vector<std::int64_t> all;
  for (const auto& one : spool.events(1000)) all.push_back(one.sequence);
  return all;
}

TEST(Spool, KeepsWhatWasNotRemoved) {
  const core::TemporaryFolder folder;
  {
    auto spool = Spool::open(folder.path(), 1).value();
    ASSERT_TRUE(spool.add_outcome({.attempt = {1, 2}, .finished = true, .result = R"({"a":1})"}));
    ASSERT_TRUE(spool.add_outcome({.attempt = {2, 1}, .reason = "no"}));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(spool.add_event(event()));
    spool.remove_outcome({1, 2});
    spool.remove_events(1);
  }
  auto spool = Spool::open(folder.path(), 1).value();
  const auto outcomes = spool.outcomes(10);
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].attempt.job, 2);
  EXPECT_EQ(outcomes[0].reason, "no");
  EXPECT_THAT(numbers(spool), ElementsAre(2, 3));
  EXPECT_EQ(spool.events(1).front().body, R"({"message":"m"})");
}

TEST(Spool, NumbersGrowOverRestartsAndWithNothingLeft) {
  const core::TemporaryFolder folder;
  std::int64_t last = 0;
  for (int restart = 0; restart < 3; ++restart) {
    auto spool = Spool::open(folder.path(), 5).value();
    ASSERT_TRUE(spool.add_event(event()));
    const auto number = numbers(spool).back();
    EXPECT_GT(number, last);
    EXPECT_GE(number, 5);
    last = number;
    spool.remove_events(number);
  }
}

TEST(Spool, ForgetsTheOldestEventsWhenThereAreTooMany) {
  const core::TemporaryFolder folder;
  auto spool = Spool::open(folder.path(), 1, {.most_events = 2}).value();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(spool.add_event(event()));
  EXPECT_THAT(numbers(spool), ElementsAre(3, 4));
}

TEST(Spool, PutsAsideWhatTheDiskHasDamaged) {
  const core::TemporaryFolder folder;
  {
    auto spool = Spool::open(folder.path(), 1).value();
    ASSERT_TRUE(spool.add_outcome({.attempt = {1, 1}, .reason = "no"}));
    ASSERT_TRUE(spool.add_outcome({.attempt = {2, 1}, .reason = "no"}));
    ASSERT_TRUE(spool.add_event(event()));
  }
  ASSERT_TRUE(core::write_file(folder.path() / "results/1-1.json", "{\"resul"));
  ASSERT_TRUE(core::write_file(folder.path() / "results/x.json", "{}"));
  ASSERT_TRUE(core::write_file(folder.path() / "events/0000000000000001.json", ""));
  ASSERT_TRUE(core::write_file(folder.path() / "sequence", "nonsense"));
  auto spool = Spool::open(folder.path(), 1).value();
  EXPECT_EQ(spool.outcomes(10).size(), 1u);
  EXPECT_TRUE(numbers(spool).empty());
  EXPECT_FALSE(spool.has_events());
  ASSERT_TRUE(spool.add_event(event()));
  EXPECT_THAT(numbers(spool), ElementsAre(2));
}

}  // namespace
}  // namespace fleetfit::agent
