#include "fleetfit/adapt/serving.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "tests/adapt/fake_subnets.h"

namespace fleetfit::adapt {
namespace {

using namespace std::chrono_literals;

SubnetPool three_subnets() {
  SubnetPool pool;
  pool.entries = {{.subnet = "quick", .latency_ms = 1, .accuracy = 0.7},
                  {.subnet = "middle", .latency_ms = 2, .accuracy = 0.8},
                  {.subnet = "slow", .latency_ms = 4, .accuracy = 0.9}};
  return pool;
}

class Serving : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& entry : three_subnets().entries)
      subnets.behaviours[entry.subnet] = {.ms = entry.latency_ms, .bytes = 100};
  }

  std::unique_ptr<SubnetServer> start(ServerOptions options, SubnetPool pool = three_subnets()) {
    options.on_event = [this](const ServingEvent& event) { events.push_back(event); };
    return SubnetServer::start(std::move(pool), subnets, clock, std::move(options)).value();
  }

  void serve(SubnetServer& server, int requests) {
    for (int i = 0; i < requests; ++i) ASSERT_TRUE(server.serve(input));
  }

  std::vector<ServingEvent> of_kind(ServingEventKind kind) const {
    std::vector<ServingEvent> found;
    for (const auto& event : events) {
      if (event.kind == kind) found.push_back(event);
    }
    return found;
  }
  std::vector<ServingEvent> switches() const { return of_kind(ServingEventKind::switched); }

  core::FakeClock clock;
  FakeSubnets subnets{clock};
  std::vector<ServingEvent> events;
  std::vector<float> input = {0.1F, 0.7F, 0.2F};
};

TEST_F(Serving, StartsWithTheMostAccurateSubnetThatFits) {
  const auto server = start({.budget_ms = 3});
  const auto answer = server->serve(input).value();
  EXPECT_EQ(answer.subnet, "middle");
  EXPECT_EQ(answer.best_class, 1);
  EXPECT_EQ(answer.scores, input);
  EXPECT_DOUBLE_EQ(answer.latency_ms, 2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, ServingEventKind::started);
  EXPECT_EQ(events[0].to, "middle");
}

TEST_F(Serving, GoesDownUnderLoadAndUpAfterIt) {
  const auto server = start({.budget_ms = 5});
  server->wait_until_prepared();
  serve(*server, 50);
  EXPECT_EQ(server->report().subnet, "slow");
  subnets.load = 2;
  serve(*server, 12);
  EXPECT_EQ(server->report().subnet, "middle");
  serve(*server, 200);
  EXPECT_EQ(server->report().subnet, "middle");
  subnets.load = 1;
  serve(*server, 400);
  EXPECT_EQ(server->report().subnet, "slow");
  ASSERT_EQ(switches().size(), 2u);
  EXPECT_EQ(switches()[0].from, "slow");
  EXPECT_EQ(switches()[0].to, "middle");
  EXPECT_EQ(switches()[0].reason, "over budget");
  EXPECT_DOUBLE_EQ(switches()[0].ratio, 2);
  EXPECT_TRUE(switches()[0].prepared);
  EXPECT_EQ(switches()[0].switch_us, 0);  // the clock stands still between requests
  EXPECT_EQ(switches()[1].reason, "room");
}

TEST_F(Serving, TellsHowItCopedWithALoadThatComesAndGoes) {
  const auto server = start({.budget_ms = 5});
  server->wait_until_prepared();
  const auto serve_for = [&](double load, std::chrono::seconds time) {
    subnets.load = load;
    const auto end = clock.now() + time;
    while (clock.now() < end) ASSERT_TRUE(server->serve(input, 1));
  };
  serve_for(1, 5s);
  serve_for(2, 5s);
  serve_for(1, 20s);
  const auto report = server->report();
  EXPECT_EQ(report.load.changes, 2u);
  ASSERT_EQ(report.load.phases.size(), 3u);
  const auto& [before, under, after] =
      std::tie(report.load.phases[0], report.load.phases[1], report.load.phases[2]);
  EXPECT_NEAR(under.start_s, 5, 0.11);
  EXPECT_NEAR(after.start_s, 10, 0.11);
  EXPECT_NEAR(under.ratio, 2, 0.01);
  EXPECT_NEAR(after.ratio, 1, 0.01);
  EXPECT_EQ(before.subnet, "slow");
  EXPECT_EQ(under.subnet, "middle");
  EXPECT_EQ(after.subnet, "slow");
  EXPECT_NEAR(under.accuracy, 0.8, 1e-9);
  EXPECT_EQ(before.requests + under.requests + after.requests, report.requests);
  EXPECT_LT(report.within_budget, report.requests) << "it takes some requests to see the load";
  EXPECT_EQ(report.load.settled_within_budget, report.load.settled);
  // 4 s at 4 ms, 4 s at 2 x 2 ms, 19 s at 2 to 4 ms
  EXPECT_NEAR(static_cast<double>(before.settled), 1000, 30);
  EXPECT_NEAR(static_cast<double>(under.settled), 1000, 30);
  EXPECT_EQ(after.right, after.settled);
  EXPECT_EQ(accuracy_returned(report.load), true);
}

TEST_F(Serving, WhileTheRightSubnetIsNotReadyTheBestThatIsReadyServes) {
  subnets.hold("middle");
  const auto server = start({.budget_ms = 5});
  subnets.load = 2;
  serve(*server, 12);
  EXPECT_EQ(server->report().subnet, "quick");
  subnets.release("middle");
  server->wait_until_prepared();
  serve(*server, 500);
  EXPECT_EQ(server->report().subnet, "middle");
  ASSERT_EQ(switches().size(), 2u);
  EXPECT_EQ(switches()[1].reason, "room");
}

TEST_F(Serving, ServesOnWithTheOldSubnetUntilABetterOneIsReady) {
  subnets.hold("slow");
  subnets.load = 2;
  const auto server = start({.budget_ms = 2.5});
  EXPECT_EQ(server->report().subnet, "middle");
  serve(*server, 50);
  EXPECT_EQ(server->report().subnet, "quick");
  subnets.load = 0.5;
  serve(*server, 2000);
  EXPECT_EQ(server->report().subnet, "quick");  // slow is wanted, and not ready
  clock.advance(7ms);
  subnets.release("slow");
  server->wait_until_prepared();
  serve(*server, 1);
  EXPECT_EQ(server->report().subnet, "slow");
  EXPECT_FALSE(switches().back().prepared);
  EXPECT_GT(switches().back().switch_us, 7000);
}

TEST_F(Serving, SaysWhenNothingFitsAndTakesWhatTheSearchFinds) {
  double asked_ms = 0;
  // Once: requests are served on meanwhile, for as long as the search's thread has to wait.
  ServerOptions options{.budget_ms = 5, .switching = {.search_again_ms = 1e12}};
  options.search = [&](double budget_ms, const std::stop_token&) -> Result<SubnetPool> {
    asked_ms = budget_ms;
    SubnetPool found;
    found.entries = {{.subnet = "tiny", .latency_ms = 0.4, .accuracy = 0.5}};
    return found;
  };
  subnets.behaviours["tiny"] = {.ms = 0.4, .bytes = 100};
  const auto server = start(std::move(options));
  server->wait_until_prepared();
  subnets.load = 10;
  serve(*server, 300);
  for (int i = 0; i < 1000 && server->report().subnet != "tiny"; ++i) {
    serve(*server, 20);
    std::this_thread::sleep_for(1ms);
  }
  serve(*server, 100);  // enough to judge the new subnet by
  EXPECT_EQ(server->report().subnet, "tiny");
  EXPECT_DOUBLE_EQ(asked_ms, 0.5);
  EXPECT_EQ(of_kind(ServingEventKind::nothing_fits).size(), 1u);
  EXPECT_EQ(of_kind(ServingEventKind::searched).size(), 1u);
  EXPECT_EQ(switches()[0].reason, "nothing fits");
  EXPECT_TRUE(server->report().budget_met);
}

TEST_F(Serving, GoesOnWithTheQuickestWhenTheSearchFails) {
  ServerOptions options{.budget_ms = 5, .switching = {.search_again_ms = 1e12}};
  options.search = [](double, const std::stop_token&) -> Result<SubnetPool> {
    return fail(ErrorCode::invalid_input, "no luck");
  };
  const auto server = start(std::move(options));
  subnets.load = 10;
  for (int i = 0; i < 1000 && of_kind(ServingEventKind::search_failed).empty(); ++i) {
    serve(*server, 20);
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_EQ(of_kind(ServingEventKind::search_failed).size(), 1u);
  EXPECT_EQ(of_kind(ServingEventKind::search_failed)[0].reason, "no luck");
  EXPECT_EQ(server->report().subnet, "quick");
  EXPECT_FALSE(server->report().budget_met);
}

TEST_F(Serving, CountsWhatItServes) {
  const auto server = start({.budget_ms = 3});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(server->serve(input, 1));
  ASSERT_TRUE(server->serve(input, 2));
  subnets.load = 3;
  serve(*server, 3);
  const auto report = server->report();
  EXPECT_EQ(report.requests, 8u);
  EXPECT_EQ(report.within_budget, 5u);
  EXPECT_EQ(report.labelled, 5u);
  EXPECT_EQ(report.right, 4u);
  EXPECT_DOUBLE_EQ(report.median_ms, 2);
  ASSERT_EQ(report.subnets.size(), 1u);
  EXPECT_EQ(report.subnets[0].subnet, "middle");
  EXPECT_DOUBLE_EQ(report.subnets[0].mean_ms, (5 * 2 + 3 * 6) / 8.0);
  EXPECT_LE(report.prepared_bytes, 300u);
}

TEST_F(Serving, ARequestThatFailsIsNotCounted) {
  const auto server = start({.budget_ms = 3});
  EXPECT_FALSE(server->serve(std::vector<float>{1, 2}));
  EXPECT_EQ(server->report().requests, 0u);
}

TEST_F(Serving, TellsOfSubnetsThatCannotBePreparedAndDoesWithoutThem) {
  subnets.broken = {"middle"};
  const auto server = start({.budget_ms = 5});
  server->wait_until_prepared();
  serve(*server, 1);
  ASSERT_EQ(of_kind(ServingEventKind::prepare_failed).size(), 1u);
  EXPECT_EQ(of_kind(ServingEventKind::prepare_failed)[0].to, "middle");
  subnets.load = 2;
  serve(*server, 20);
  EXPECT_EQ(server->report().subnet, "quick");
  subnets.load = 1;
  serve(*server, 2000);
  EXPECT_EQ(server->report().subnet, "slow");
  EXPECT_EQ(of_kind(ServingEventKind::prepare_failed).size(), 1u);
}

TEST_F(Serving, SwitchesEvenIfThereIsHardlyAnyMemory) {
  const auto server = start({.budget_ms = 5, .memory_bytes = 1});
  server->wait_until_prepared();
  subnets.load = 2;
  serve(*server, 20);
  server->wait_until_prepared();
  serve(*server, 500);
  EXPECT_EQ(server->report().subnet, "middle");
  EXPECT_LE(server->report().prepared_bytes, 300u);
}

TEST_F(Serving, RefusesWhatCannotBeServed) {
  const auto code = [&](SubnetPool pool, double budget_ms) {
    const auto server =
        SubnetServer::start(std::move(pool), subnets, clock, {.budget_ms = budget_ms});
    return server ? std::nullopt : std::optional(server.error().code);
  };
  EXPECT_EQ(code({}, 3), ErrorCode::invalid_input);
  EXPECT_EQ(code(three_subnets(), 0), ErrorCode::invalid_input);
  EXPECT_EQ(code(three_subnets(), std::numeric_limits<double>::infinity()),
            ErrorCode::invalid_input);
  subnets.broken = {"quick"};
  EXPECT_EQ(code(three_subnets(), 3), ErrorCode::unsupported);
}

TEST(ServingEvents, AreLinesOfJson) {
  const auto line = to_json_line({.kind = ServingEventKind::switched,
                                  .time_s = 1.5,
                                  .from = "o-o",
                                  .to = "o-s1",
                                  .ratio = 1.25,
                                  .switch_us = 12,
                                  .prepared = false,
                                  .reason = "over budget"});
  EXPECT_EQ(nlohmann::json::parse(line), nlohmann::json::parse(R"({
    "event": "switch", "time": 1.5, "from": "o-o", "to": "o-s1", "ratio": 1.25, "switch_us": 12.0,
    "prepared": false, "reason": "over budget"})"));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace fleetfit::adapt
