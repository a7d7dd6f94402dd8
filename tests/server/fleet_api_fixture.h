#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/server/fleet_api.h"
#include "fleetfit/store/fleet_store.h"
#include "tests/core/fake_clock.h"

namespace fleetfit::server {

/// A fleet's API over a store in memory, at a time that the test sets.
class FleetApiTest : public ::testing::Test {
 protected:
  using Json = nlohmann::json;

  FleetApiTest() { start({}); }

  /// Another server over the same store.
  void start(FleetApiOptions options) {
    clock_.advance(std::chrono::hours(24 * 365 * 50));
    options.folder = scratch_.path() / "files";
    options.log = [this](const std::string& line) { log_ += line + "\n"; };
    auto api = make_fleet_api(workplace_, std::move(options));
    ASSERT_TRUE(api) << api.error().message;
    api_ = *std::move(api);
  }

  std::string add_token(store::Role role, const std::string& device = {},
                        std::optional<store::Time> expires = {}) {
    const auto secret = "secret-" + std::to_string(++tokens_);
    const auto id = fleet().add_token({.name = secret + "'s name",
                                       .role = role,
                                       .hash = core::sha256_hex(secret),
                                       .device = device,
                                       .created = now(),
                                       .expires = expires});
    EXPECT_TRUE(id) << id.error().message;
    return secret;
  }

  ApiReply ask(const std::string& token, const std::string& method, const std::string& target,
               const Json& body = nullptr) {
    const auto question = target.find('?');
    ApiRequest request{.method = method,
                       .path = "/api/v1" + target.substr(0, question),
                       .query = question == std::string::npos ? "" : target.substr(question + 1),
                       .peer = "10.0.0.1"};
    if (!token.empty()) request.authorization = "Bearer " + token;
    if (!body.is_null()) {
      request.content_type = "application/json";
      request.body = body.dump();
    }
    return api_->answer(request);
  }

  ApiReply get(const std::string& target) { return ask(admin_, "GET", target); }
  ApiReply post(const std::string& target, const Json& body) {
    return ask(admin_, "POST", target, body);
  }
  ApiReply as_agent(const std::string& token, const std::string& target, const Json& body) {
    return ask(token, "POST", "/agent/" + target, body);
  }

  static Json json(const ApiReply& reply) { return Json::parse(reply.body); }
  static std::string problem(const ApiReply& reply) {
    return json(reply).at("error").at("message").get<std::string>();
  }
  static std::string header(const ApiReply& reply, const std::string& name) {
    for (const auto& [key, value] : reply.headers)
      if (key == name) return value;
    return {};
  }

  /// A device that has registered; gives its token.
  std::string add_device(const std::string& name) {
    const auto token = add_token(store::Role::agent, name);
    const auto reply =
        as_agent(token, "register", {{"name", name}, {"version", "1.0"}, {"hardware", "a board"}});
    EXPECT_EQ(reply.status, 200) << reply.body;
    return token;
  }

  /// A file as if it had been uploaded.
  std::string add_file(const std::string& content, const std::string& name = "net.onnx") {
    const auto hash = core::sha256_hex(content);
    const auto saved = fleet().save_file({.hash = hash,
                                          .name = name,
                                          .kind = "onnx",
                                          .bytes = static_cast<std::int64_t>(content.size()),
                                          .created = now()});
    EXPECT_TRUE(saved) << saved.error().message;
    return hash;
  }

  std::int64_t add_job(const std::string& device, const std::string& model,
                       const std::string& as = {}) {
    Json request{{"model", model}, {"name", "net.onnx"}};
    if (!as.empty()) request["as"] = as;
    const auto reply =
        post("/jobs", {{"device", device}, {"kind", "measure"}, {"request", request}});
    EXPECT_EQ(reply.status, 201) << reply.body;
    return json(reply).at("id");
  }

  static Json measured(const std::string& hash, double median_ms = 12.5) {
    return {
        {"model", "net.onnx"},
        {"hash", hash},
        {"device", "local"},
        {"device_fingerprint", "f00d"},
        {"status", "ok"},
        {"reason", ""},
        {"latency_ms",
         {{"median", median_ms},
          {"mean", median_ms + 0.5},
          {"p90", median_ms + 1},
          {"p99", median_ms + 2},
          {"ci95", {median_ms - 0.5, median_ms + 0.5}}}},
        {"runs", 30},
        {"ops", {{{"name", "conv1"}, {"type", "Conv"}, {"kernel", "gemm"}, {"latency_ms", 10.0}}}},
        {"started", "2026-11-16T08:00:00.000Z"}};
  }

  static Json outcome(std::int64_t job, std::int64_t attempt, const Json& result) {
    return {{"results",
             {{{"job", job}, {"attempt", attempt}, {"state", "finished"}, {"result", result}}}}};
  }

  void wait(double seconds) {
    clock_.advance(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
  }
  store::Time now() const { return std::chrono::floor<std::chrono::milliseconds>(clock_.date()); }
  store::FleetStore& fleet() { return workplace_.store->fleet(); }
  store::Store& store() { return *workplace_.store; }
  FleetApi& api() { return *api_; }

  core::ScratchFolder scratch_ = core::ScratchFolder::create().value();
  core::FakeClock clock_;
  app::Workplace workplace_ = app::open_workplace("memory:", clock_).value();
  std::unique_ptr<FleetApi> api_;
  int tokens_ = 0;
  std::string log_;
  std::string admin_ = add_token(store::Role::admin);
  std::string viewer_ = add_token(store::Role::viewer);
};

}  // namespace fleetfit::server
