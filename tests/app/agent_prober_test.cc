#include "app/fit/probers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "fleetfit/app/measuring.h"

namespace fleetfit::app {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// What the server knows; outlives the clients that call it.
struct FakeServer {
  std::size_t uploads = 0;
  std::map<std::string, std::int64_t> keys = {};
  std::map<std::int64_t, json> jobs = {};
  std::string end = "finished";  // how each job ends; "waiting": never
  int away = 0;                  // so many calls get no answer
  std::vector<std::string> removed = {};
};

json measured(double ms) {
  return {
      {"model", "design.onnx"},
      {"hash", "abc"},
      {"device", "local"},
      {"device_fingerprint", "board-1"},
      {"status", "ok"},
      {"reason", ""},
      {"latency_ms", {{"median", ms}, {"mean", ms}, {"p90", ms}, {"p99", ms}, {"ci95", {ms, ms}}}},
      {"runs", 10}};
}

class FakeClient final : public fleet::Client {
 public:
  explicit FakeClient(FakeServer& server) : server_(server) {}

  Reply get(std::string_view path) override {
    if (server_.away > 0 && server_.away-- > 0)
      return tl::unexpected(fleet::CallError{.message = "no answer"});
    if (path.starts_with("/devices/"))
      return json{{"hardware", "a board"}, {"last_seen", "2026-01-01T00:00:00.000Z"}};
    auto& job = server_.jobs.at(std::stoll(std::string(path.substr(6))));
    if (job.at("state") == "waiting") job["state"] = server_.end;
    if (job.at("state") == "failed") job["reason"] = "it crashed";
    return job;
  }

  Reply post(std::string_view path, const json& body) override {
    EXPECT_EQ(path, "/jobs");
    const auto id = static_cast<std::int64_t>(server_.keys.size() + 1);
    const auto [known, fresh] = server_.keys.emplace(body.at("key").get<std::string>(), id);
    if (fresh)
      server_.jobs[id] = {{"id", id},
                          {"state", "waiting"},
                          {"request", body.at("request")},
                          {"result", measured(static_cast<double>(id))}};
    return server_.jobs.at(known->second);
  }

  Reply remove(std::string_view path) override {
    server_.removed.emplace_back(path);
    return json::object();
  }

  Reply upload(std::string_view, const std::filesystem::path& file) override {
    EXPECT_GT(std::filesystem::file_size(file), 1000U);
    return json{{"hash", std::string(63, '0') + std::to_string(server_.uploads++ % 3)}};
  }

  tl::expected<void, fleet::CallError> download(std::string_view,
                                                const std::filesystem::path&) override {
    return tl::unexpected(fleet::CallError{.message = "not here"});
  }

 private:
  FakeServer& server_;
};

class AgentProber : public testing::Test {
 protected:
  std::unique_ptr<fit::Prober> prober(double patience_s = 30) {
    return make_agent_prober({workplace_, *progress_},
                             {.space = {*space_, "nasbench201"},
                              .agent = "pi4",
                              .as = "int8",
                              .budgets = {{.limit = 5}},
                              .patience_s = patience_s},
                             std::make_unique<FakeClient>(server_), count_);
  }

  FakeServer server_;
  core::SystemClock clock_;
  Workplace workplace_ = open_workplace("memory:", clock_).value();
  std::unique_ptr<core::Progress> progress_ = core::make_silent_progress();
  const space::Space* space_ = space::find_space("nasbench201").value();
  space::Population designs_ = space::sample_designs(*space_, {.count = 3}).value();
  ProbeCount count_;
};

TEST_F(AgentProber, KeepsWhatTheAgentMeasuredAndAsksForItOnce) {
  const auto probes = prober()->measure(designs_).value();

  ASSERT_EQ(probes.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(probes[i].costs, std::vector<double>{static_cast<double>(i + 1)});
  const auto kept = workplace_.store->list_measurements({.device = "pi4.int8"}).value();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].device_fingerprint, "board-1");
  EXPECT_EQ(prober()->measure(designs_).value()[2].costs, std::vector<double>{3.0});
  EXPECT_EQ(server_.uploads, 3U);
  EXPECT_EQ(count_.made, 3U);
  EXPECT_EQ(count_.asked, 6U);
}

TEST_F(AgentProber, AServerThatIsAwayForAMomentIsWaitedFor) {
  server_.away = 2;
  EXPECT_EQ(prober()->measure(designs_).value()[0].costs, std::vector<double>{1.0});
}

TEST_F(AgentProber, AJobThatFailedIsAProblemOfItsDesign) {
  server_.end = "failed";
  const auto probes = prober()->measure(designs_).value();
  EXPECT_TRUE(probes[1].costs.empty());
  EXPECT_THAT(probes[1].problem, HasSubstr("it crashed"));
}

TEST_F(AgentProber, WhatEndedInVainIsAskedForAgainByTheNextRun) {
  server_.end = "failed";
  const auto first = prober();
  EXPECT_TRUE(first->measure(designs_).value()[0].costs.empty());
  EXPECT_TRUE(first->measure(designs_).value()[0].costs.empty());
  EXPECT_EQ(server_.jobs.size(), 3U);
  server_.end = "finished";
  EXPECT_EQ(prober()->measure(designs_).value()[0].costs, std::vector<double>{4.0});
  EXPECT_EQ(server_.jobs.size(), 6U);
}

TEST_F(AgentProber, AnAgentThatStaysAwayIsReportedAndItsJobsAreCancelled) {
  server_.end = "waiting";
  const auto probes = prober(0.2)->measure(designs_);
  ASSERT_FALSE(probes);
  EXPECT_EQ(probes.error().code, ErrorCode::device_failed);
  EXPECT_THAT(probes.error().message, HasSubstr("pi4"));
  EXPECT_THAT(probes.error().message, HasSubstr("last seen at 2026-01-01"));
  EXPECT_THAT(server_.removed, testing::ElementsAre("/jobs/1", "/jobs/2", "/jobs/3"));
}

}  // namespace
}  // namespace fleetfit::app
