#include "fleetfit/server/serving_http.h"

#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <new>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <thread>

#include "tests/server/line.h"

namespace fleetfit::server {
namespace {

/// Answers with the request itself, and refuses empty ones.
class EchoServing : public app::Serving {
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

ApiReply reply_to(const ApiRequest& request) {
  EchoServing serving;
  return ServingApi(serving).answer(request);
}

int status_of(const ApiRequest& request) { return reply_to(request).status; }

/// A server that runs as long as this lives.
class RunningServer {
 public:
  explicit RunningServer(app::Serving& serving) {
    std::promise<int> port;
    thread_ = std::jthread([&](const std::stop_token& stop) {
      const auto served = serve_http(
          serving, {.host = "127.0.0.1"},
          [&](const std::string& bound) {
            port.set_value(std::stoi(bound.substr(bound.rfind(':') + 1)));
          },
          stop);
      EXPECT_TRUE(served) << served.error().message;
    });
    port_ = port.get_future().get();
  }

  int port() const { return port_; }
  std::string ask(const std::string& text) const {
    Line line(port_);
    line.send(text);
    return line.read_all();
  }

 private:
  int port_ = 0;
  std::jthread thread_;
};

std::string request(const std::string& first, const std::string& body = {},
                    const std::string& headers = "Host: localhost\r\nConnection: close\r\n") {
  return first + " HTTP/1.1\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

TEST(ServingHttp, PassesRequestsOn) {
  const auto reply = reply_to({.method = "POST", .path = "/v1/predict", .body = "{}"});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "{}\n");
  const auto status = reply_to({.method = "GET", .path = "/v1/status"});
  EXPECT_EQ(nlohmann::json::parse(status.body).at("requests"), 3);
}

TEST(ServingHttp, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(status_of({.method = "POST", .path = "/v1/predict"}), 400);
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

TEST(ServingHttp, RefusesTooLargeRequestsBeforeTheyHaveCome) {
  EchoServing serving;
  const RunningServer server(serving);
  const auto reply = server.ask(
      "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Length: 1001\r\n\r\n");
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
