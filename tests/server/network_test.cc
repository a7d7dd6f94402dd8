#include "fleetfit/server/network.h"

#include <gtest/gtest.h>

#include "server/clients/forwarded.h"

namespace fleetfit::server {
namespace {

std::vector<Network> networks(std::initializer_list<const char*> texts) {
  std::vector<Network> all;
  for (const auto* text : texts) all.push_back(parse_network(text).value());
  return all;
}

TEST(Network, HoldsTheAddressesThatBeginLikeIt) {
  const auto some =
      networks({"10.0.0.0/8", "192.168.1.2", "2001:db8::/33", "::1", "172.16.0.0/12"});
  for (const auto* address : {"10.0.0.0", "10.255.255.255", "192.168.1.2", "::ffff:10.1.2.3",
                              "2001:db8:7fff::1", "::1", "172.31.0.1"})
    EXPECT_TRUE(is_in(some, address)) << address;
  for (const auto* address : {"11.0.0.0", "9.255.255.255", "192.168.1.3", "2001:db8:8000::1", "::2",
                              "172.32.0.1", "::10.1.2.3", "", "unknown", "10.1.2.3:80"})
    EXPECT_FALSE(is_in(some, address)) << address;
  EXPECT_TRUE(is_in(networks({"0.0.0.0/0"}), "203.0.113.9"));
  EXPECT_FALSE(is_in(networks({"0.0.0.0/0"}), "2001:db8::1"));
}

TEST(Network, IsWrittenAsAddressAndBits) {
  for (const auto* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x",
                           "10.0.0/8", "::/129", "localhost", "10.0.0.0/8/8", "[::1]"})
    EXPECT_FALSE(parse_network(text)) << text;
}

TEST(LimitKey, CountsTheMachinesOfVersion6ByTheirNetworks) {
  EXPECT_EQ(limit_key("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(limit_key("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(limit_key("2001:db8:1:2:3:4:5:6"), limit_key("2001:db8:1:2::9"));
  EXPECT_NE(limit_key("2001:db8:1:2::9"), limit_key("2001:db8:1:3::9"));
}

std::string asking(const std::string& headers, const std::string& peer = "10.0.0.1") {
  const auto head = parse_head("GET / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n");
  EXPECT_TRUE(head) << headers;
  return asking_address(*head, peer, networks({"10.0.0.0/8", "fd00::/8"}));
}

TEST(AskingAddress, IsTheLastOneThatIsNoTrustedProxy) {
  EXPECT_EQ(asking("X-Forwarded-For: 192.0.2.1\r\n"), "192.0.2.1");
  EXPECT_EQ(asking("X-Forwarded-For: 1.2.3.4, 192.0.2.1, 10.0.0.2\r\n"), "192.0.2.1");
  EXPECT_EQ(asking("X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 192.0.2.1\r\n"), "192.0.2.1");
  EXPECT_EQ(asking("X-Forwarded-For: 192.0.2.1:4711\r\n"), "192.0.2.1");
  EXPECT_EQ(asking("X-Forwarded-For: 2001:DB8::1\r\n"), "2001:db8::1");
  EXPECT_EQ(asking("Forwarded: for=1.2.3.4, For=\"[2001:db8::1]:99\";proto=https\r\n"),
            "2001:db8::1");
  EXPECT_EQ(asking("Forwarded: proto=https;for=192.0.2.1, for=10.0.0.7\r\n"), "192.0.2.1");
}

TEST(AskingAddress, IsTheProxyWhereItSaysNothingThatHolds) {
  EXPECT_EQ(asking(""), "10.0.0.1");
  EXPECT_EQ(asking("X-Forwarded-For: unknown\r\n"), "10.0.0.1");
  EXPECT_EQ(asking("X-Forwarded-For: 192.0.2.1, unknown, 10.0.0.2\r\n"), "10.0.0.2");
  EXPECT_EQ(asking("X-Forwarded-For:\r\n"), "10.0.0.1");
  EXPECT_EQ(asking("Forwarded: for=_hidden\r\n"), "10.0.0.1");
  EXPECT_EQ(asking("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2\r\n"), "10.0.0.1");
  EXPECT_EQ(asking("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n"), "192.0.2.1");
}

TEST(AskingAddress, OfOthersIsTheirOwn) {
  EXPECT_EQ(asking("X-Forwarded-For: 192.0.2.1\r\n", "203.0.113.5"), "203.0.113.5");
  EXPECT_EQ(asking("Forwarded: for=192.0.2.1\r\n", "203.0.113.5"), "203.0.113.5");
}

}  // namespace
}  // namespace fleetfit::server
