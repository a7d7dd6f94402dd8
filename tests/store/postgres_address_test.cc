#include "store/sql/postgres_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/store/store.h"

namespace fleetfit::store {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ServerAddress, TakesTheSchemaOutAndLeavesTheRestToLibpq) {
  const auto address =
      parse_postgres(
          "postgres://me:pw@db.example:5433/fleet?sslmode=verify-full&schema=team_1"
          "&sslrootcert=/etc/ca.pem")
          .value();
  EXPECT_EQ(address.url,
            "postgres://me:pw@db.example:5433/fleet?sslmode=verify-full&sslrootcert=/etc/ca.pem");
  EXPECT_EQ(address.schema, "team_1");
  EXPECT_EQ(address.name, "postgres://db.example:5433/fleet");
  EXPECT_EQ(parse_postgres("postgresql:///fleet").value().schema, "fleetfit");
  EXPECT_EQ(parse_postgres("postgres://me@/fleet?host=/run/pg&port=99").value().name,
            "postgres:///fleet");
}

TEST(ServerAddress, IsRefusedWithoutAWordOfItsPassword) {
  for (const std::string_view url :
       {"postgres://me:secret@host/db?nonsense=1", "postgres://me:secret%zz@host/db",
        "postgres://me:secret@[::1/db", "postgres://me:secret@host/db?schema=Drop%20Table",
        "postgres://me:secret@host/db?schema=", "postgres://host/db?password=secret&x"}) {
    const auto address = parse_postgres(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(address.error().message, HasSubstr("store postgres: "));
    EXPECT_THAT(address.error().message, Not(HasSubstr("secret")));
  }
}

TEST(ServerAddress, IsToldFromItsPassword) {
  const auto parts = [](std::string_view url) {
    const auto address = without_password(url);
    return std::pair(address.url, address.password);
  };
  using P = std::pair<std::string, std::string>;
  EXPECT_EQ(parts("postgres://me:a%40b@host:1/db?sslmode=require"),
            P("postgres://me@host:1/db?sslmode=require", "a@b"));
  EXPECT_EQ(parts("postgres://me@host:1/db?password=x%26y&schema=s"),
            P("postgres://me@host:1/db?schema=s", "x&y"));
  EXPECT_EQ(parts("postgres://me:a?b@host/db"), P("postgres://me@host/db", "a?b"));
  EXPECT_EQ(parts("postgres://me@host/db?p%61ssword=x"), P("postgres://me@host/db", "x"));
  EXPECT_EQ(parts("postgres://host:5432/db"), P("postgres://host:5432/db", ""));
  EXPECT_EQ(parts("postgres:///db"), P("postgres:///db", ""));
  EXPECT_EQ(parts("sqlite:a:b@c.db"), P("sqlite:a:b@c.db", ""));
}

}  // namespace
}  // namespace fleetfit::store
