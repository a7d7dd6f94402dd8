#include "fleetfit/server/address.h"

#include <gtest/gtest.h>

namespace fleetfit::server {
namespace {

TEST(ParseLoopback, TakesAddressesOfThisMachineAlone) {
  const auto address = parse_loopback("127.0.0.1:8080");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 8080);
  EXPECT_EQ(parse_loopback("localhost:0")->port, 0);
  EXPECT_EQ(parse_loopback("[::1]:65535")->host, "::1");
  EXPECT_EQ(parse_loopback("127.8.9.1:1")->host, "127.8.9.1");
  for (const auto* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                           "127.0.0.1:-1", "0.0.0.0:80", "192.168.1.2:80", "[::]:80",
                           "example.org:80", "127.0.0.1.example.org:80", "127.1:80x"}) {
    const auto refused = parse_loopback(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_input) << text;
  }
}

TEST(ParseAddress, TakesEveryAddressButNoNames) {
  EXPECT_EQ(parse_address("0.0.0.0:8443")->host, "0.0.0.0");
  EXPECT_EQ(parse_address("[2001:db8::1]:443")->host, "2001:db8::1");
  EXPECT_FALSE(is_loopback(*parse_address("0.0.0.0:1")));
  EXPECT_FALSE(is_loopback(*parse_address("[::]:1")));
  EXPECT_TRUE(is_loopback(*parse_address("[::1]:1")));
  EXPECT_EQ(to_text(*parse_address("[::1]:80")), "[::1]:80");
  for (const auto* text : {"example.org:80", "::1:80", "[127.0.0.1]:80", "1.2.3:80", "[]:80"})
    EXPECT_FALSE(parse_address(text)) << text;
}

}  // namespace
}  // namespace fleetfit::server
