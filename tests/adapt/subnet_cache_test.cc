#include "fleetfit/adapt/subnet_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/adapt/fake_subnets.h"

namespace fleetfit::adapt {
namespace {

using testing::ElementsAre;

constexpr std::size_t kPlenty = 1'000'000;

TEST(SubnetCache, PreparesWhatIsWantedInItsOrder) {
  core::FakeClock clock;
  FakeSubnets subnets(clock);
  SubnetCache cache(subnets, kPlenty);
  EXPECT_FALSE(cache.find("b"));
  cache.want({"b", "c", "a"});
  cache.wait_until_idle();
  EXPECT_THAT(subnets.prepared(), ElementsAre("b", "c", "a"));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_EQ(cache.bytes(), 300u);
}

TEST(SubnetCache, PreparesNothingTwice) {
  core::FakeClock clock;
  FakeSubnets subnets(clock);
  SubnetCache cache(subnets, kPlenty);
  cache.want({"a"});
  cache.wait_until_idle();
  const auto first = cache.find("a");
  cache.want({"a", "b"});
  cache.wait_until_idle();
  EXPECT_THAT(subnets.prepared(), ElementsAre("a", "b"));
  EXPECT_EQ(cache.find("a"), first);
}

TEST(SubnetCache, WhatIsWantedLeastHasNoPlaceWhenMemoryIsShort) {
  core::FakeClock clock;
  FakeSubnets subnets(clock);
  SubnetCache cache(subnets, 250);
  cache.want({"a", "b", "c", "d"});
  cache.wait_until_idle();
  EXPECT_TRUE(cache.find("a"));
  EXPECT_TRUE(cache.find("b"));
  EXPECT_FALSE(cache.find("c"));
  EXPECT_FALSE(cache.find("d"));
  EXPECT_LE(cache.bytes(), 250u);
  // There was no room for c, so d is not even tried.
  EXPECT_THAT(subnets.prepared(), ElementsAre("a", "b", "c"));
}

TEST(SubnetCache, WhatIsNotWantedMakesRoomByLastUse) {
  core::FakeClock clock;
  FakeSubnets subnets(clock);
  SubnetCache cache(subnets, 350);
  cache.want({"a", "b", "c"});
  cache.wait_until_idle();
  cache.find("b");
  cache.find("c");
  cache.want({"a", "d"});
  cache.wait_until_idle();
  EXPECT_TRUE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(cache.find("c"));
  EXPECT_TRUE(cache.find("d"));
}

TEST(SubnetCache, KeepsTheTwoMostImportantEvenIfTheyAreTooLarge) {
  core::FakeClock clock;
  FakeSubnets subnets(clock);
  subnets.behaviours["a"].bytes = 1000;
  SubnetCache cache(subnets, 500);
  cache.want({"a", "b", "c"});
  cache.wait_until_idle();
  EXPECT_TRUE(cache.find("a"));
  EXPECT_TRUE(cache.find("b"));
  EXPECT_FALSE(cache.find("c"));
}

TEST(SubnetCache, WhatStillRunsOutlivesItsPlace) {
  core::FakeClock clock;
  FakeSubnets subnets(clock);
  SubnetCache cache(subnets, 100);
  cache.want({"a"});
  cache.wait_until_idle();
  const auto running = cache.find("a");
  cache.want({"b"});
  cache.wait_until_idle();
  EXPECT_FALSE(cache.find("a"));
  EXPECT_TRUE(running->run(std::vector<float>{1, 2, 3}));
}

TEST(SubnetCache, TellsOfFailuresOnceAndDoesNotTryAgain) {
  core::FakeClock clock;
  FakeSubnets subnets(clock);
  subnets.broken = {"b"};
  SubnetCache cache(subnets, kPlenty);
  cache.want({"a", "b", "c"});
  cache.wait_until_idle();
  const auto failures = cache.take_failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].subnet, "b");
  EXPECT_EQ(failures[0].error.message, "b is broken");
  cache.want({"b", "a"});
  cache.wait_until_idle();
  EXPECT_TRUE(cache.take_failures().empty());
  EXPECT_THAT(subnets.prepared(), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace fleetfit::adapt
