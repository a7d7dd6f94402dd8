#pragma once

#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "fleetfit/app/serving.h"
#include "fleetfit/server/fleet_http.h"
#include "fleetfit/server/serving_http.h"
#include "tests/server/fleet_api_fixture.h"
#include "tests/server/line.h"

namespace fleetfit::server {

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

/// Serves subnets as long as this lives.
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

/// A fleet's API, and servers of it.
class FleetServerTest : public FleetApiTest {
 protected:
  FleetServerTest() {
    start({.events_added = [this] { bell_.ring(); }});
  }
  ~FleetServerTest() override { server_ = {}; }  // before what it works with

  /// Gives the port.
  int listen(ListenOptions options) {
    options.address = {"127.0.0.1", 0};
    options.incoming = scratch_.path() / "files" / "incoming";
    std::promise<int> port;
    server_ = std::jthread([this, &port, options](const std::stop_token& stop) {
      const auto served = serve_fleet(
          api(), bell_, options,
          [&port](const std::string& url) {
            port.set_value(std::stoi(url.substr(url.rfind(':') + 1)));
          },
          stop);
      EXPECT_TRUE(served) << served.error().message;
    });
    return port.get_future().get();
  }

  std::string head(const std::string& first, const std::string& more = {}) const {
    return first + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + admin_ + "\r\n" +
           more + "\r\n";
  }

  Bell bell_;
  std::jthread server_;
};

}  // namespace fleetfit::server
