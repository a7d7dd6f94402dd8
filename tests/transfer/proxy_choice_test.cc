#include "fleetfit/transfer/proxy_choice.h"

#include <gmock/gmock.h>

namespace fleetfit::transfer {
namespace {

using testing::ElementsAre;

/// Two groups that do not agree: a, b, c and d, e.
CorrelationMatrix two_groups() {
  return {.devices = {"a", "b", "c", "d", "e"},
          .srcc = {{1, 0.95, 0.8, 0.1, 0.2},
                   {0.95, 1, 0.93, 0.3, 0.3},
                   {0.8, 0.93, 1, 0.2, 0.1},
                   {0.1, 0.3, 0.2, 1, 0.92},
                   {0.2, 0.3, 0.1, 0.92, 1}}};
}

TEST(RankProxies, PutsTheDeviceThatAgreesBestFirst) {
  const auto ranking = rank_proxies(two_groups());
  EXPECT_EQ(ranking[0].device, "b");
  EXPECT_NEAR(ranking[0].mean_srcc, (0.95 + 0.93 + 0.3 + 0.3) / 4, 1e-12);
  EXPECT_EQ(ranking.back().device, "e");
}

TEST(CoverDevices, OpensAProxyForEachGroup) {
  const auto pool = cover_devices(two_groups(), 0.9);
  ASSERT_EQ(pool.size(), 2u);
  EXPECT_EQ(pool[0].proxy, "b");
  EXPECT_THAT(pool[0].devices, ElementsAre("a", "b", "c"));
  EXPECT_THAT(pool[1].devices, ElementsAre("d", "e"));
}

TEST(CoverDevices, LeavesEachDeviceToItselfIfNoneAgree) {
  EXPECT_EQ(cover_devices(two_groups(), 0.99).size(), 5u);
  EXPECT_EQ(cover_devices(two_groups(), -1).size(), 1u);
}

TEST(ProxyPool, GivesTheNearestProxyAndOpensANewOneIfNoneFits) {
  ProxyPool pool(0.8);
  const auto first = pool.place("first", {1, 2, 3, 4, 5}).value();
  EXPECT_TRUE(first.is_new);
  EXPECT_FALSE(first.agreement);
  const auto second = pool.place("second", {5, 4, 3, 2, 1}).value();
  EXPECT_TRUE(second.is_new);
  EXPECT_EQ(second.agreement->srcc, -1);
  const auto third = pool.place("third", {9, 8, 6, 7, 1}).value();
  EXPECT_FALSE(third.is_new);
  EXPECT_EQ(third.proxy, "second");
  EXPECT_NEAR(third.agreement->srcc, 0.9, 1e-12);
  EXPECT_THAT(pool.proxies(), ElementsAre("first", "second"));
}

TEST(ProxyPool, NamesADeviceWithoutAnOrder) {
  ProxyPool pool(0.8);
  EXPECT_THAT(pool.place("flat", {2, 2, 2, 2}).error().message, testing::HasSubstr("'flat'"));
  ASSERT_TRUE(pool.place("good", {1, 2, 3, 4}));
  EXPECT_THAT(pool.place("short", {1, 2, 3}).error().message, testing::HasSubstr("'short'"));
}

}  // namespace
}  // namespace fleetfit::transfer
