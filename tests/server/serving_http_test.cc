#include "fleetfit/server/serving_http.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fleetfit::server {
namespace {

/// Answers with the request itself, and refuses empty ones.
class EchoServing final : public app::Serving {
 public:
  adapt::Reply answer(std::string_view request) override {
    return {.json = std::string(request), .ok = !request.empty()};
  }
  std::size_t most_request_bytes() const override { return 1000; }
  nlohmann::ordered_json status() const override { return {{"requests", 3}}; }
  Status serve_data(const app::DataRequests&, core::Progress&, const std::stop_token&) override {
    return {};
  }
  void announce(std::string_view) override {}
  app::ServeSummary summary() const override { return {}; }
};

int status_of(const HttpRequest& request) {
  EchoServing serving;
  return respond(serving, request).status;
}

TEST(ServingHttp, PassesRequestsOn) {
  EchoServing serving;
  const auto reply = respond(serving, {.method = "POST", .path = "/v1/predict", .body = "{}"});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "{}");
  const auto status = respond(serving, {.method = "GET", .path = "/v1/status"});
  EXPECT_EQ(nlohmann::json::parse(status.body).at("requests"), 3);
}

TEST(ServingHttp, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(status_of({.method = "POST", .path = "/v1/predict"}), 400);
  EXPECT_EQ(status_of({.method = "GET", .path = "/v1/predict"}), 405);
  EXPECT_EQ(status_of({.method = "POST", .path = "/v1/status"}), 405);
  EXPECT_EQ(status_of({.method = "GET", .path = "/"}), 404);
  EXPECT_EQ(status_of({.method = "GET", .path = "/v1/status/../predict"}), 404);
}

TEST(ServingHttp, StopsWhenAsked) {
  EchoServing serving;
  std::stop_source stop;
  std::string address;
  const auto status = serve_http(
      serving, {.host = "127.0.0.1"},
      [&](const std::string& bound) {
        address = bound;
        stop.request_stop();
      },
      stop.get_token());
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_TRUE(address.starts_with("127.0.0.1:"));
}

}  // namespace
}  // namespace fleetfit::server
