#include "fleetfit/app/tokens.h"

#include <gtest/gtest.h>

#include "fleetfit/core/sha256.h"
#include "tests/store/example_records.h"

namespace fleetfit::app {
namespace {

using namespace std::chrono_literals;
using store::date;

class Tokens : public testing::Test {
 protected:
  CreatedToken create(const TokenRequest& request) {
    return create_token(fleet_, request, date()).value();
  }
  std::string answer(std::string_view secret, store::Time now) {
    const auto found = find_token(fleet_, secret, now);
    if (found) return found->name;
    EXPECT_EQ(found.error().code, ErrorCode::not_found);
    return found.error().message;
  }

  std::unique_ptr<store::Store> store_ = store::open_store("memory:").value();
  store::FleetStore& fleet_ = store_->fleet();
};

TEST_F(Tokens, AreFoundByTheirSecretsAlone) {
  const auto created = create({.name = "me", .role = store::Role::admin});
  EXPECT_EQ(find_token(fleet_, created.token, date(1)).value(), created.record);
  EXPECT_EQ(created.record.hash, core::sha256_hex(created.token));
  EXPECT_EQ(answer(created.record.hash, date(1)), "the token is not valid");
}

TEST_F(Tokens, SayNothingOfWhyTheyAreWorthNothing) {
  const auto expiring = create({.name = "short", .expires = date(1000)});
  const auto revoked = create({.name = "revoked"});
  ASSERT_EQ(fleet_.revoke_token(revoked.record.id, date(1)), true);
  EXPECT_EQ(answer(expiring.token, date(999)), "short");
  for (const auto& secret : {expiring.token, revoked.token, std::string("ff_unknown")})
    EXPECT_EQ(answer(secret, date(1000)), "the token is not valid");
}

TEST_F(Tokens, AreBoundToDevicesOnlyAsAgents) {
  EXPECT_EQ(create({.role = store::Role::agent, .device = "pi4"}).record.device, "pi4");
  const auto refused = [&](const TokenRequest& request) {
    const auto created = create_token(fleet_, request, date());
    return created ? "accepted" : created.error().message.substr(0, 7);
  };
  EXPECT_EQ(refused({.role = store::Role::admin, .device = "pi4"}), "device:");
  EXPECT_EQ(refused({.role = store::Role::agent, .device = "a/b"}), "device:");
  EXPECT_EQ(refused({.expires = date()}), "expires");
  EXPECT_EQ(fleet_.list_tokens()->size(), 1u);
}

TEST(Lifetime, IsHoursDaysOrWeeks) {
  EXPECT_EQ(parse_lifetime("12h").value(), 12h);
  EXPECT_EQ(parse_lifetime("30d").value(), 720h);
  EXPECT_EQ(parse_lifetime("2w").value(), 336h);
  EXPECT_EQ(parse_lifetime("36500d").value(), 876000h);
  for (const char* bad : {"", "d", "5", "5m", "0d", "-1d", "5 d", "36501d", "9223372036854775807w",
                          "99999999999999999999h"})
    EXPECT_FALSE(parse_lifetime(bad)) << bad;
}

}  // namespace
}  // namespace fleetfit::app
