#include "fleetfit/server/serving_http.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <new>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <thread>

#include "server/http_server.h"
#include "tests/server/line.h"
#include "tests/server/running_servers.h"

namespace fleetfit::server {
namespace {

ApiReply reply_to(const ApiRequest& request) {
  EchoServing serving;
  return ServingApi(serving).answer(request);
}

int status_of(const ApiRequest& request) { return reply_to(request).status; }

std::string request(const std::string& first, const std::string& body = {},
                    const std::string& headers = "Host: localhost\r\nConnection: close\r\n") {
  return first + " HTTP/1.1\r\n" + headers +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

TEST(ServingHttp, PassesRequestsOn) {
  const auto reply = reply_to(
      {.method = "POST", .path = "/v1/predict", .content_type = "application/json", .body = "{}"});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "{}\n");
  const auto status = reply_to({.method = "GET", .path = "/v1/status"});
  EXPECT_EQ(nlohmann::json::parse(status.body).at("requests"), 3);
}

TEST(ServingHttp, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(
      status_of({.method = "POST", .path = "/v1/predict", .content_type = "application/json"}),
      400);
  EXPECT_EQ(status_of({.method = "GET", .path = "/v1/predict"}), 405);
  EXPECT_EQ(status_of({.method = "POST", .path = "/v1/status"}), 405);
  EXPECT_EQ(status_of({.method = "GET", .path = "/"}), 404);
  EXPECT_EQ(status_of({.method = "GET", .path = "/v1/status/../predict"}), 404);
  EXPECT_EQ(reply_to({.method = "GET", .path = "/"}).body,
            "{\"error\":\"there are POST /v1/predict and GET /v1/status\"}\n");
}

TEST(ServingHttp, AnswersThoseWhoNameThisMachine) {
  const auto status_by = [](const char* host) {
    return status_of({.method = "GET", .path = "/v1/status", .host = host});
  };
  for (const char* host : {"localhost", "localhost:80", "127.0.0.1:8080", "[::1]", "[::1]:8080"})
    EXPECT_EQ(status_by(host), 200) << host;
  for (const char* host : {"example.org", "localhost.example.org:80", "[::2]:8080"})
    EXPECT_EQ(status_by(host), 400) << host;
}

TEST(ServingHttp, AHostIsAnAddressOfThisMachineWithThePort) {
  EchoServing serving;
  ServingApi api(serving);
  api.serve_at(8080);
  const auto status_by = [&](const char* host) {
    return api.answer({.method = "GET", .path = "/v1/status", .host = host}).status;
  };
  for (const char* host :
       {"localhost", "localhost:8080", "127.0.0.1:8080", "127.8.9.1:8080", "[::1]:8080"})
    EXPECT_EQ(status_by(host), 200) << host;
  for (const char* host :
       {"127.evil.com", "127.evil.com:8080", "127.0.0.1.evil.com:8080", "127.0.0.1", "127.1:8080",
        "127.0.0.1:8081", "localhost:8081", "127.0.0.1:", "127.0.0.1:08080x", "[::1]", "::1",
        "[::1]:80", "[::ffff:1.2.3.4]:8080", "localhost.:8080", "localhost@evil.com:8080",
        "0.0.0.0:8080", "2130706433:8080", "evil.com"})
    EXPECT_EQ(status_by(host), 400) << host;
}

TEST(ServingHttp, PagesOfOthersMayNotAsk) {
  EchoServing serving;
  ServingApi api(serving);
  const auto status_from = [&](const char* origin) {
    return api
        .answer({.method = "GET", .path = "/v1/status", .host = "localhost:80", .origin = origin})
        .status;
  };
  EXPECT_EQ(status_from(""), 200);
  EXPECT_EQ(status_from("http://localhost:80"), 200);
  for (const char* origin : {"http://evil.com", "https://localhost:80", "http://localhost:81",
                             "http://localhost:80.evil.com", "null", "http://127.0.0.1:80"})
    EXPECT_EQ(status_from(origin), 403) << origin;
}

TEST(ServingHttp, PredictsForJsonAlone) {
  const auto status_of_type = [](const char* type) {
    return status_of({.method = "POST", .path = "/v1/predict", .content_type = type, .body = "{}"});
  };
  for (const char* type : {"application/json", "application/json; charset=utf-8",
                           "Application/JSON", "application/json;charset=utf-8"})
    EXPECT_EQ(status_of_type(type), 200) << type;
  // What a page of somebody else may send without asking first.
  for (const char* type :
       {"", "text/plain", "text/plain; application/json", "application/x-www-form-urlencoded",
        "multipart/form-data", "application/jsonx", "text/plain, application/json"})
    EXPECT_EQ(status_of_type(type), 415) << type;
}

TEST(ServingHttp, UnfinishedRequestsDoNotStopOthers) {
  EchoServing serving;
  const RunningServer server(serving);
  std::deque<Line> heads;
  std::deque<Line> bodies;
  constexpr int kUnfinished = 300;  // more than there may be connections
  for (int i = 0; i < kUnfinished; ++i) {
    heads.emplace_back(server.port()).send("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n");
    bodies.emplace_back(server.port())
        .send(
            "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
            "\r\nContent-Length: 900\r\n\r\n{");
    EXPECT_TRUE(server.ask(request("POST /v1/predict", "mine")).ends_with("mine\n")) << i;
  }
}

TEST(ServingHttp, SlowRequestsEnd) {
  EchoServing serving;
  ServingApi api(serving);
  constexpr auto kShort = std::chrono::milliseconds(100);
  HttpServer server(api, nullptr,
                    {.address = {.host = "127.0.0.1"},
                     .workers = 2,
                     .patience = {.handshake = kShort, .head = kShort, .body = kShort}},
                    nullptr);
  const auto address = server.open();
  ASSERT_TRUE(address);
  const std::jthread running([&](const std::stop_token& stop) { EXPECT_TRUE(server.run(stop)); });
  Line idle(address->port);
  Line head(address->port);
  head.send("GET /v1/status HTTP/1.1\r\nHost:");
  Line body(address->port);
  body.send(
      "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
      "\r\nContent-Length: 9\r\n\r\n{");
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(head.read_all().starts_with("HTTP/1.1 408"));
  EXPECT_TRUE(body.read_all().starts_with("HTTP/1.1 408"));
}

TEST(ServingHttp, RefusesTooLargeRequestsBeforeTheyHaveCome) {
  EchoServing serving;
  const RunningServer server(serving);
  const auto reply = server.ask(
      "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/json\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 413")) << reply;
  EXPECT_NE(reply.find("{\"error\":\"the body is larger than 1000 bytes\"}\n"), std::string::npos);
  EXPECT_TRUE(server.ask("GET /" + std::string(20'000, 'a')).starts_with("HTTP/1.1 431"));
  EXPECT_TRUE(server.ask(request("GET /v1/status", "x")).starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(server.ask(request("POST /v1/predict", std::string(1000, 'x')))
                  .ends_with(std::string(1000, 'x') + "\n"));
}

TEST(ServingHttp, AConnectionTakesManyRequests) {
  EchoServing serving;
  const RunningServer server(serving);
  Line line(server.port());
  line.send(request("POST /v1/predict", "one", "Host: localhost\r\n"));
  EXPECT_NE(line.read_until("one\n").find("application/json"), std::string::npos);
  line.send(request("POST /v1/predict", "two"));
  EXPECT_TRUE(line.read_all().ends_with("two\n"));
}

/// Answers when it is allowed to.
class SlowServing final : public EchoServing {
 public:
  adapt::Reply answer(std::string_view request) override {
    begun_.release();
    allowed_.acquire();
    return EchoServing::answer(request);
  }
  void wait_for_request() { begun_.acquire(); }
  void allow() { allowed_.release(); }

 private:
  std::counting_semaphore<> begun_{0};
  std::counting_semaphore<> allowed_{0};
};

TEST(ServingHttp, APredictionThatTakesLongDoesNotHoldUpOthers) {
  SlowServing serving;
  const RunningServer server(serving);
  Line slow(server.port());
  slow.send(request("POST /v1/predict", "slow"));
  serving.wait_for_request();
  EXPECT_TRUE(server.ask(request("GET /v1/status")).starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(server.ask(request("GET /")).starts_with("HTTP/1.1 404"));
  serving.allow();
  EXPECT_TRUE(slow.read_all().ends_with("slow\n"));
}

TEST(ServingHttp, MoreRequestsThanThreadsAreAllAnswered) {
  SlowServing serving;
  const RunningServer server(serving);
  constexpr int kRequests = 20;
  std::deque<Line> lines;
  for (int i = 0; i < kRequests; ++i)
    lines.emplace_back(server.port()).send(request("POST /v1/predict", std::to_string(i)));
  for (int i = 0; i < kRequests; ++i) serving.allow();
  for (int i = 0; i < kRequests; ++i)
    EXPECT_TRUE(
        lines[static_cast<std::size_t>(i)].read_all().ends_with("\n" + std::to_string(i) + "\n"));
}

TEST(ServingHttp, WhatBreaksARequestDoesNotBreakTheServer) {
  class BrokenServing final : public EchoServing {
    adapt::Reply answer(std::string_view) override { throw std::bad_alloc(); }
  } serving;
  const RunningServer server(serving);
  EXPECT_TRUE(server.ask(request("POST /v1/predict", "{}")).starts_with("HTTP/1.1 500"));
  EXPECT_TRUE(server.ask(request("GET /v1/status")).starts_with("HTTP/1.1 200"));
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
