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
