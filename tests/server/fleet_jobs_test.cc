#include "tests/server/fleet_api_fixture.h"

namespace fleetfit::server {
namespace {

class FleetJobs : public FleetApiTest {
 protected:
  Json claim(std::int64_t most = 10) {
    return json(as_agent(agent_, "claim", {{"most", most}})).at("jobs");
  }
  Json heartbeat(const Json& running = Json::array()) {
    const auto reply = as_agent(agent_, "heartbeat", {{"running", running}});
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json(reply);
  }
  Json job(std::int64_t id) { return json(get("/jobs/" + std::to_string(id))); }
  std::string end(const Json& outcomes) {
    const auto reply = as_agent(agent_, "results", outcomes);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json(reply).at("results").at(0).at("ended");
  }
  /// States of a job, in the order in which events told them.
  std::vector<std::string> told_states(std::int64_t id) {
    std::vector<std::string> states;
    const auto events = json(get("/events?kind=job&job=" + std::to_string(id))).at("items");
    for (const auto& event : events) states.push_back(event.at("body").at("state"));
    return states;
  }

  std::string agent_ = add_device("pi4");
  std::string model_ = add_file("a model");
};

TEST_F(FleetJobs, AJobGoesFromOrderToMeasurement) {
  const auto id = add_job("pi4", model_);
  EXPECT_EQ(heartbeat().at("waiting"), 1);
  const auto jobs = claim();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].at("id"), id);
  EXPECT_EQ(jobs[0].at("attempt"), 1);
  EXPECT_EQ(jobs[0].at("kind"), "measure");
  EXPECT_EQ(jobs[0].at("request").at("model"), model_);
  EXPECT_EQ(jobs[0].at("lease_s"), 60.0);
  EXPECT_EQ(job(id).at("state"), "running");
  EXPECT_EQ(end(outcome(id, 1, measured(model_))), "now");
  EXPECT_EQ(job(id).at("state"), "finished");
  EXPECT_EQ(job(id).at("result").at("runs"), 30);
  EXPECT_EQ(told_states(id), (std::vector<std::string>{"waiting", "running", "finished"}));

  const auto kept = json(get("/measurements?device=pi4")).at("items");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].at("latency_ms").at("median"), 12.5);
  EXPECT_EQ(kept[0].at("model"), "net");
  EXPECT_EQ(kept[0].at("device_fingerprint"), "f00d");
  EXPECT_FALSE(kept[0].contains("ops"));
  const auto whole = json(get("/measurements/" + kept[0].at("id").dump()));
  EXPECT_EQ(whole.at("ops").at(0).at("name"), "conv1");
}

TEST_F(FleetJobs, TheSameResultAgainChangesNothing) {
  const auto id = add_job("pi4", model_);
  claim();
  EXPECT_EQ(end(outcome(id, 1, measured(model_))), "now");
  EXPECT_EQ(end(outcome(id, 1, measured(model_))), "already");
  EXPECT_EQ(json(get("/measurements")).at("items").size(), 1u);
  EXPECT_EQ(told_states(id).size(), 3u);
}

TEST_F(FleetJobs, AMeasurementThatAKilledServerDidNotKeepIsKeptWhenItIsSentAgain) {
  const auto id = add_job("pi4", model_);
  claim();
  const store::JobEnd ended{.job = id, .attempt = 1, .result = measured(model_).dump()};
  ASSERT_TRUE(fleet().end_jobs("pi4", {&ended, 1}, now()));  // and then the power failed
  EXPECT_EQ(end(outcome(id, 1, measured(model_))), "already");
  EXPECT_EQ(end(outcome(id, 1, measured(model_))), "already");
  EXPECT_EQ(json(get("/measurements")).at("items").size(), 1u);
}

TEST_F(FleetJobs, AnotherSettingIsAnotherDevice) {
  const auto id = add_job("pi4", model_, "int8");
  claim();
  end(outcome(id, 1, measured(model_)));
  EXPECT_EQ(json(get("/measurements?device=pi4.int8")).at("items").size(), 1u);
  EXPECT_TRUE(json(get("/measurements?device=pi4")).at("items").empty());
  EXPECT_EQ(json(get("/devices/pi4")).at("measurements").size(), 1u);
  EXPECT_EQ(json(get("/devices/pi4")).at("settings").at(0).at("name"), "pi4.int8");
}

TEST_F(FleetJobs, AResultThatMakesNoSenseIsAFailedJobWithAReason) {
  auto negative = measured(model_);
  negative["latency_ms"]["median"] = -1;
  auto missing = measured(model_);
  missing.erase("latency_ms");
  auto other = measured(std::string(64, 'a'));
  auto crossed = measured(model_);
  crossed["latency_ms"]["ci95"] = {2, 1};
  auto odd = measured(model_);
  odd["ops"][0]["name"] = std::string("a\0b", 3);
  for (const auto& result : {negative, missing, other, crossed, odd, Json{{"status", 7}}}) {
    const auto id = add_job("pi4", model_);
    claim();
    EXPECT_EQ(end(outcome(id, 1, result)), "now");
    EXPECT_EQ(job(id).at("state"), "failed") << result;
    EXPECT_FALSE(job(id).at("reason").get<std::string>().empty());
  }
  EXPECT_TRUE(json(get("/measurements")).at("items").empty());
}

TEST_F(FleetJobs, ALeaseThatEndsGivesTheJobBackAtMostThreeTimes) {
  const auto id = add_job("pi4", model_);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_EQ(claim().size(), 1u) << attempt;
    wait(59);
    ASSERT_TRUE(api().look_after());
    EXPECT_EQ(job(id).at("state"), "running");
    wait(2);
    ASSERT_TRUE(api().look_after());
  }
  EXPECT_EQ(job(id).at("state"), "failed");
  EXPECT_EQ(told_states(id), (std::vector<std::string>{"waiting", "running", "waiting", "running",
                                                       "waiting", "running", "failed"}));
}

TEST_F(FleetJobs, AHeartbeatProlongsTheLease) {
  const auto id = add_job("pi4", model_);
  claim();
  for (int i = 0; i < 5; ++i) {
    wait(50);
    heartbeat({{{"id", id}, {"attempt", 1}}});
    ASSERT_TRUE(api().look_after());
  }
  EXPECT_EQ(job(id).at("state"), "running");
}

TEST_F(FleetJobs, AnEarlierAttemptDoesNotCountOnceAnotherHasTheJob) {
  const auto id = add_job("pi4", model_);
  claim();
  wait(61);
  ASSERT_TRUE(api().look_after());
  EXPECT_EQ(claim().at(0).at("attempt"), 2);
  EXPECT_EQ(end(outcome(id, 1, measured(model_, 1))), "lost");
  EXPECT_TRUE(json(get("/measurements")).at("items").empty());
  EXPECT_EQ(end(outcome(id, 2, measured(model_, 2))), "now");
  EXPECT_EQ(json(get("/measurements")).at("items").at(0).at("latency_ms").at("median"), 2.0);
}

TEST_F(FleetJobs, ACancelledJobIsToldToItsAgent) {
  const auto waiting = add_job("pi4", model_);
  EXPECT_EQ(json(ask(admin_, "DELETE", "/jobs/" + std::to_string(waiting))).at("state"),
            "cancelled");
  EXPECT_EQ(ask(admin_, "DELETE", "/jobs/" + std::to_string(waiting)).status, 409);
  const auto running = add_job("pi4", model_);
  ASSERT_EQ(claim().size(), 1u);
  ask(admin_, "DELETE", "/jobs/" + std::to_string(running));
  EXPECT_EQ(heartbeat({{{"id", running}, {"attempt", 1}}}).at("cancel"), Json({running}));
}

TEST_F(FleetJobs, AgentsSeeTheirOwnJobsAndFilesAlone) {
  const auto other = add_device("pi5");
  const auto id = add_job("pi4", model_);
  EXPECT_TRUE(json(as_agent(other, "claim", Json::object())).at("jobs").empty());
  EXPECT_EQ(ask(other, "GET", "/jobs/" + std::to_string(id)).status, 403);
  EXPECT_EQ(ask(other, "GET", "/files/" + model_).status, 404);
  EXPECT_EQ(ask(agent_, "GET", "/files/" + model_).status, 200);
  EXPECT_EQ(ask(other, "GET", "/files/" + model_ + "?device=pi4").status, 403);
  EXPECT_EQ(as_agent(other, "claim?device=pi4", Json::object()).status, 403);
  EXPECT_EQ(as_agent(other, "register", {{"name", "pi4"}, {"version", "1"}}).status, 403);
  claim();
  EXPECT_EQ(json(as_agent(other, "results", outcome(id, 1, measured(model_))))
                .at("results")
                .at(0)
                .at("ended"),
            "lost");
  EXPECT_EQ(job(id).at("state"), "running");
}

TEST_F(FleetJobs, ATokenOfNoDeviceSaysWhichOneItIs) {
  const auto any = add_token(store::Role::agent);
  EXPECT_EQ(as_agent(any, "claim", Json::object()).status, 400);
  EXPECT_EQ(as_agent(any, "register", {{"name", "pi6"}, {"version", "1"}}).status, 200);
  EXPECT_EQ(as_agent(any, "claim?device=pi6", Json::object()).status, 200);
  EXPECT_EQ(as_agent(any, "heartbeat?device=unknown", Json::object()).status, 404);
}

TEST_F(FleetJobs, TheSameKeyIsTheSameJob) {
  const Json order{
      {"device", "pi4"}, {"kind", "probe"}, {"request", Json::object()}, {"key", "k1"}};
  const auto first = json(post("/jobs", order)).at("id");
  wait(1);
  const auto again = post("/jobs", order);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(json(again).at("id"), first);
  EXPECT_EQ(json(get("/jobs")).at("items").size(), 1u);
}

TEST_F(FleetJobs, OrdersAreCheckedBeforeTheyAreTaken) {
  const auto order = [&](const Json& request, const char* kind = "measure",
                         const char* device = "pi4") {
    return post("/jobs", {{"device", device}, {"kind", kind}, {"request", request}});
  };
  const Json good{{"model", model_}, {"name", "net.onnx"}};
  EXPECT_EQ(order(good).status, 201);
  EXPECT_EQ(order(good, "measure", "nobody").status, 404);
  EXPECT_EQ(order(good, "dance").status, 400);
  EXPECT_EQ(order({{"model", "short"}, {"name", "net.onnx"}}).status, 400);
  EXPECT_EQ(order({{"model", model_}, {"name", "../net.onnx"}}).status, 400);
  const auto missing = order({{"model", std::string(64, 'b')}, {"name", "net.onnx"}});
  EXPECT_EQ(missing.status, 400);
  EXPECT_NE(problem(missing).find("there is no file bbb"), std::string::npos);
}

TEST_F(FleetJobs, ListsArePaged) {
  for (int i = 0; i < 5; ++i) add_job("pi4", model_);
  const auto first = json(get("/jobs?limit=2"));
  EXPECT_EQ(first.at("items").at(0).at("id"), 5);
  EXPECT_FALSE(first.at("items").at(0).contains("result"));
  EXPECT_EQ(first.at("next"), 4);
  const auto last = json(get("/jobs?limit=10&after=2"));
  EXPECT_EQ(last.at("items").size(), 1u);
  EXPECT_TRUE(last.at("next").is_null());
  claim(2);
  EXPECT_EQ(json(get("/jobs?state=running")).at("items").size(), 2u);
  EXPECT_EQ(json(get("/jobs?device=other")).at("items").size(), 0u);
}

TEST_F(FleetJobs, EventsOfAgentsAreTakenOnce) {
  const auto send = [&](std::int64_t first) {
    auto events = Json::array();
    for (auto i = first; i < first + 3; ++i)
      events.push_back({{"sequence", i},
                        {"time", "2026-11-16T08:00:00.250Z"},
                        {"kind", "switch"},
                        {"body", {{"number", i}}}});
    EXPECT_EQ(as_agent(agent_, "events", {{"events", events}}).status, 200);
  };
  send(1);
  send(2);
  const auto events = json(get("/events?kind=switch")).at("items");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[3].at("body").at("number"), 4);
  EXPECT_EQ(events[0].at("device"), "pi4");
  EXPECT_EQ(events[0].at("device_time"), "2026-11-16T08:00:00.250Z");
  EXPECT_EQ(
      json(as_agent(agent_, "register", {{"name", "pi4"}, {"version", "1"}})).at("last_sequence"),
      4);
}

TEST_F(FleetJobs, ComingAndGoingAreEvents) {
  const auto states = [&] {
    std::vector<std::string> all;
    const auto events = json(get("/events?kind=device&device=pi4")).at("items");
    for (const auto& event : events) all.push_back(event.at("body").at("state"));
    return all;
  };
  EXPECT_EQ(states(), (std::vector<std::string>{"online"}));
  wait(30);
  heartbeat();
  wait(30);
  ASSERT_TRUE(api().look_after());
  EXPECT_EQ(json(get("/devices/pi4")).at("state"), "online");
  wait(6);
  ASSERT_TRUE(api().look_after());
  ASSERT_TRUE(api().look_after());
  EXPECT_EQ(json(get("/devices/pi4")).at("state"), "offline");
  heartbeat();
  EXPECT_EQ(states(), (std::vector<std::string>{"online", "offline", "online"}));
}

TEST_F(FleetJobs, ADeviceThatWasOnlineBeforeARestartIsMissedAfterIt) {
  start({});  // fifty years later
  heartbeat();
  auto options = FleetApiOptions{.folder = scratch_.path() / "files"};
  api_ = make_fleet_api(workplace_, options).value();
  wait(36);
  ASSERT_TRUE(api().look_after());
  const auto events = json(get("/events?kind=device&device=pi4")).at("items");
  EXPECT_EQ(events.back().at("body").at("state"), "offline");
}

TEST_F(FleetJobs, StreamsGoOnWhereTheyWere) {
  add_job("pi4", model_);
  add_job("pi4", model_);
  const auto all = api().events_after(0, 100).value();
  ASSERT_GE(all.size(), 2u);
  const auto rest = api().events_after(all[0].id, 100).value();
  EXPECT_EQ(rest.size(), all.size() - 1);
  EXPECT_EQ(Json::parse(rest[0].json).at("id"), all[1].id);

  ApiRequest request{.method = "GET",
                     .path = "/api/v1/events/stream",
                     .authorization = "Bearer " + viewer_,
                     .last_event_id = "1"};
  EXPECT_EQ(api().answer(request).events_after, 1);
  request.last_event_id = "";
  EXPECT_EQ(api().answer(request).events_after, all.back().id);
  request.last_event_id = "x";
  EXPECT_EQ(api().answer(request).status, 400);
}

}  // namespace
}  // namespace fleetfit::server
