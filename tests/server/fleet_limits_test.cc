#include <gmock/gmock.h>

#include "server/api_state.h"
#include "tests/server/fleet_api_fixture.h"

/// What a token that somebody has stolen cannot do, and what is said of tokens that are none.
namespace fleetfit::server {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class FleetLimits : public FleetApiTest {
 protected:
  /// The status that a request with a body gets when its head has come; 0: it is let in.
  int status_of_head(const std::string& token, const std::string& path) {
    const auto admission = api().admit({.method = "POST",
                                        .path = "/api/v1" + path,
                                        .authorization = "Bearer " + token,
                                        .content_type = "application/json",
                                        .peer = "10.0.0.1",
                                        .body_bytes = 20});
    return admission.refused ? admission.refused->status : 0;
  }
  ApiReply enrol(const std::string& token, const std::string& name) {
    return as_agent(token, "register", {{"name", name}, {"version", "1"}});
  }
  std::vector<std::string> log_lines() const {
    std::vector<std::string> lines;
    std::string line;
    for (std::istringstream text(log_); std::getline(text, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(FleetLimits, WrongTokensCountWhetherABodyFollowsOrNot) {
  start({.of_address = {.burst = 3, .per_second = 0.5}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of_head("guess", "/jobs"), 401);
  EXPECT_EQ(status_of_head("guess", "/jobs"), 429);
  EXPECT_EQ(status_of_head("guess", "/files"), 429);
  EXPECT_EQ(ask("guess", "GET", "/summary").status, 429);
  EXPECT_EQ(status_of_head(admin_, "/jobs"), 0) << "who has a token is not concerned";
}

TEST_F(FleetLimits, ABodyIsNotWaitedForIfItsTokenIsOverItsLimit) {
  start({.of_token = {.burst = 2, .per_second = 1}});
  EXPECT_EQ(status_of_head(admin_, "/files"), 0);
  EXPECT_EQ(get("/summary").status, 200);
  EXPECT_EQ(get("/summary").status, 200) << "a head that is let in counts when it is answered";
  EXPECT_EQ(status_of_head(admin_, "/files"), 429);
}

TEST_F(FleetLimits, AnotherNameOfADeviceIsNoOtherToken) {
  start({.of_token = {.burst = 5, .per_second = 1},
         .of_shared_token = {.burst = 8, .per_second = 1}});
  int passed = 0;
  for (int i = 0; i < 20; ++i)
    passed += get("/jobs?device=d" + std::to_string(i)).status == 200 ? 1 : 0;
  EXPECT_EQ(passed, 5);

  const auto shared = add_token(store::Role::agent);
  passed = 0;
  for (int i = 0; i < 20; ++i) {
    const auto target = "claim?device=d" + std::to_string(i);
    passed += as_agent(shared, target, Json::object()).status != 429 ? 1 : 0;
  }
  EXPECT_EQ(passed, 8);
}

TEST_F(FleetLimits, DevicesRegisterForTheFirstTimeAtALimitedRate) {
  start({.of_new_devices = {.burst = 3, .per_second = 1}});
  const auto token = add_token(store::Role::agent);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(enrol(token, "d" + std::to_string(i)).status, 200);
  const auto refused = enrol(token, "d3");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(header(refused, "Retry-After"), "1");
  EXPECT_EQ(enrol(add_token(store::Role::agent), "d3").status, 429) << "from the same address";
  EXPECT_EQ(enrol(token, "d0").status, 200) << "it is known";
  wait(1);
  EXPECT_EQ(enrol(token, "d3").status, 200);
}

TEST_F(FleetLimits, ATokenOfNoDeviceRegistersAsManyAsItMay) {
  const auto created = json(post("/tokens", {{"name", "rack"}, {"role", "agent"}, {"devices", 2}}));
  EXPECT_EQ(created.at("devices"), 2);
  const auto token = created.at("token").get<std::string>();
  EXPECT_EQ(enrol(token, "a").status, 200);
  EXPECT_EQ(enrol(token, "b").status, 200);
  const auto refused = enrol(token, "c");
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(problem(refused), HasSubstr("may register 2 new devices"));
  EXPECT_EQ(enrol(token, "a").status, 200) << "it has registered before";
  ASSERT_EQ(post("/devices", {{"name", "c"}}).status, 201);
  EXPECT_EQ(enrol(token, "c").status, 200) << "somebody has added it";
  EXPECT_EQ(ask(admin_, "DELETE", "/devices/a").status, 200);
  EXPECT_EQ(enrol(token, "d").status, 200) << "there is room again";

  const auto others = json(post("/tokens", {{"name", "rack 2"}, {"role", "agent"}}));
  EXPECT_EQ(others.at("devices"), 100);
  EXPECT_EQ(post("/tokens", {{"name", "v"}, {"role", "viewer"}, {"devices", 2}}).status, 400);
  EXPECT_EQ(
      post("/tokens", {{"name", "v"}, {"role", "agent"}, {"device", "x"}, {"devices", 2}}).status,
      400);
  EXPECT_EQ(post("/tokens", {{"name", "v"}, {"role", "agent"}, {"devices", -1}}).status, 400);
}

TEST_F(FleetLimits, RefusedTokensAreLoggedOnceAMinuteForAnAddress) {
  ask("a-guess", "GET", "/devices/pi4");
  ASSERT_THAT(log_lines(), SizeIs(1));
  const auto start = core::sha256_hex("a-guess").substr(0, 8);
  EXPECT_EQ(log_lines()[0],
            "10.0.0.1: a token was refused: GET /api/v1/devices/{name}, a token of "
            "hash " +
                start + "…");
  for (int i = 0; i < 5; ++i) ask("b-guess", "GET", "/jobs");
  EXPECT_EQ(status_of_head("c-guess", "/files"), 401);
  ASSERT_TRUE(api().look_after());
  EXPECT_THAT(log_lines(), SizeIs(1));
  wait(60);
  ASSERT_TRUE(api().look_after());
  ASSERT_THAT(log_lines(), SizeIs(2));
  EXPECT_THAT(log_lines()[1], HasSubstr("10.0.0.1: 6 more tokens were refused within a minute"));
  EXPECT_THAT(log_lines()[1], HasSubstr("POST /api/v1/files"));
  for (const auto* guess : {"a-guess", "b-guess", "c-guess"})
    EXPECT_THAT(log_, Not(HasSubstr(guess)));
}

TEST_F(FleetLimits, TheLogNamesTokensThatWereValidOnceAndSignIns) {
  const auto expired = add_token(store::Role::viewer, {}, now() + seconds(1));
  wait(2);
  EXPECT_EQ(ask(expired, "GET", "/summary").status, 401);
  EXPECT_THAT(log_, HasSubstr("'" + expired + "'s name', which has expired"));
  wait(120);
  ASSERT_TRUE(api().look_after());
  log_.clear();
  EXPECT_EQ(ask("", "POST", "/session", {{"token", "guess"}}).status, 401);
  EXPECT_THAT(log_, HasSubstr("10.0.0.1: a token was refused: sign-in"));
  log_.clear();
  ask("", "GET", "/summary");
  EXPECT_EQ(log_, "") << "who shows no token has not tried one";
}

TEST(RefusalLog, IsBoundedHoweverManyAddressesThereAre) {
  RefusalLog log;
  int lines = 0;
  for (int i = 0; i < 5000; ++i)
    lines += log.add("10.0." + std::to_string(i), "x", seconds(1)) ? 1 : 0;
  EXPECT_LE(lines, 1001);
  EXPECT_THAT(log.due(seconds(61)), ElementsAre(HasSubstr("other addresses: 3999 more tokens")));
}

TEST(NetworkOf, TakesAllAddressesOfOneCustomerForOne) {
  EXPECT_EQ(network_of("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(network_of("2001:db8:1:2::1"), network_of("2001:db8:1:2:ffff::9"));
  EXPECT_NE(network_of("2001:db8:1:2::1"), network_of("2001:db8:1:3::1"));
  EXPECT_NE(network_of("::ffff:10.0.0.1"), network_of("::ffff:10.0.0.2"));
}

// Events and measurements

class FleetOrigins : public FleetApiTest {
 protected:
  static Json event(std::int64_t sequence, const Json& more = Json::object()) {
    Json event{{"sequence", sequence}, {"time", "2026-11-16T08:00:00.250Z"}, {"kind", "switch"}};
    event.update(more);
    return event;
  }
  Json send(const std::string& token, const Json& events) {
    const auto reply = as_agent(token, "events", {{"events", events}});
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json(reply);
  }
  Json kept() { return json(get("/events?device=pi4&kind=switch")).at("items"); }

  std::string agent_ = add_device("pi4");
  std::string other_ = add_device("pi5");
  std::string model_ = add_file("a model");
};

TEST_F(FleetOrigins, AnEventNamesJobsOfItsOwnDeviceAlone) {
  const auto own = add_job("pi4", model_);
  const auto foreign = add_job("pi5", model_);
  const auto reply = send(agent_, {event(1, {{"job", own}}), event(2, {{"job", foreign}}),
                                   event(3, {{"job", 999}}), event(4)});
  EXPECT_EQ(reply.at("received"), 2);
  EXPECT_EQ(reply.at("dropped"), 2);
  ASSERT_EQ(kept().size(), 2u);
  EXPECT_EQ(kept()[0].at("job"), own);
  EXPECT_TRUE(kept()[1].at("job").is_null());
  const auto of_other = json(get("/events?job=" + std::to_string(foreign))).at("items");
  for (const auto& one : of_other) EXPECT_EQ(one.at("device"), "pi5") << one;
}

TEST_F(FleetOrigins, WhatTheServerSeesItSaysItself) {
  const auto own = add_job("pi4", model_);
  const auto reply =
      send(agent_, {event(1, {{"kind", "job"}, {"job", own}}), event(2, {{"kind", "device"}}),
                    event(3, {{"kind", "measurement"}}), event(4, {{"kind", "log"}})});
  EXPECT_EQ(reply.at("dropped"), 3);
}

TEST_F(FleetOrigins, AnEventWithoutATimeIsRefusedByItsNumber) {
  const auto reply =
      as_agent(agent_, "events", {{"events", {event(1), event(2, {{"time", "soon"}}), event(3)}}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(problem(reply), HasSubstr("body: events[1].time"));
  EXPECT_TRUE(kept().empty());
}

TEST_F(FleetOrigins, TheTimeOfAnEventIsTheServers) {
  send(agent_, {event(1, {{"time", "1971-01-01T00:00:00.000Z"}}),
                event(2, {{"time", "9999-01-01T00:00:00.000Z"}})});
  ASSERT_EQ(kept().size(), 2u);
  const auto now_text = json(get("/events?device=pi4&kind=device")).at("items").at(0).at("time");
  for (const auto& one : kept()) EXPECT_EQ(one.at("time"), now_text);
  EXPECT_EQ(kept()[0].at("device_time"), "1971-01-01T00:00:00.000Z");
  EXPECT_EQ(kept()[1].at("device_time"), "9999-01-01T00:00:00.000Z");
  const auto own = json(get("/events?device=pi4&kind=device")).at("items").at(0);
  EXPECT_FALSE(own.contains("device_time"));

  // Neither is forgotten before its time, or kept for ever.
  wait(3600);
  ASSERT_TRUE(api().look_after());
  EXPECT_EQ(kept().size(), 2u);
  wait(31 * 24 * 3600.0);
  ASSERT_TRUE(api().look_after());
  EXPECT_EQ(kept().size(), 0u);
}

TEST_F(FleetOrigins, AMeasurementIsOfTheDeviceAndTimeThatTheServerKnows) {
  const auto id = add_job("pi4", model_);
  ASSERT_EQ(as_agent(agent_, "claim", {{"most", 1}}).status, 200);
  auto result = measured(model_);
  result["device"] = "pi5";
  result["started"] = "9999-01-01T00:00:00.000Z";
  ASSERT_EQ(as_agent(agent_, "results", outcome(id, 1, result)).status, 200);
  const auto kept = store().list_measurements({}).value();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].device, "pi4");
  EXPECT_EQ(kept[0].started, now());
  EXPECT_EQ(Json::parse(kept[0].conditions).at("device_time"), "9999-01-01T00:00:00.000Z");
}

}  // namespace
}  // namespace fleetfit::server
