#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/server/line.h"
#include "tests/server/running_servers.h"

namespace fleetfit::server {
namespace {

constexpr const char* kCrowd = "127.0.0.2";
constexpr const char* kOther = "127.0.0.3";

class HttpLimitsTest : public FleetServerTest {
 protected:
  /// Connections that have had an answer and are kept.
  std::deque<Line> idle_lines(int port, int count, const char* from) {
    std::deque<Line> lines;
    for (int i = 0; i < count; ++i) {
      lines.emplace_back(port, from).send(head("GET /api/v1/health"));
      lines.back().read_until("\"version\"");
    }
    return lines;
  }
  std::string ask(int port, const char* from, const std::string& more = {}) {
    Line line(port, from);
    line.send(head("GET /api/v1/health", "Connection: close\r\n" + more));
    return line.read_all();
  }
};

int closed(const std::deque<Line>& lines) {
  int count = 0;
  for (const auto& line : lines) count += line.is_closed() ? 1 : 0;
  return count;
}

/// Reads what had come; some of them end behind it, others wait for more.
int ended(std::deque<Line>& lines) {
  int count = 0;
  for (auto& line : lines) {
    line.read_what_is_there();
    count += line.is_closed() ? 1 : 0;
  }
  return count;
}

TEST_F(HttpLimitsTest, AnAddressWithAllConnectionsLosesItsIdleOnesToOthers) {
  const int port = listen({.limits = {.all_connections = 40, .connections = 1000}});
  const auto crowd = idle_lines(port, 39, kCrowd);
  const auto mine = idle_lines(port, 1, kOther);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask(port, kOther).starts_with("HTTP/1.1 200")) << i;
  EXPECT_EQ(closed(mine), 0);
  EXPECT_GT(closed(crowd), 0);
  EXPECT_TRUE(crowd.front().is_closed()) << "the longest waiting goes first";
  EXPECT_FALSE(crowd.back().is_closed());
}

TEST_F(HttpLimitsTest, UnfinishedRequestsOfAnAddressGoWhenThereIsNeed) {
  const int port = listen({.limits = {.all_connections = 40, .connections = 1000}});
  std::deque<Line> crowd;
  for (int i = 0; i < 100; ++i) crowd.emplace_back(port, kCrowd).send("GET / HTTP/1.1\r\nHost:");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask(port, kOther).starts_with("HTTP/1.1 200")) << i;
}

TEST_F(HttpLimitsTest, AnAddressHasSoManyConnectionsAndKeepsTheNewest) {
  const int port = listen({.limits = {.connections = 5}});
  const auto others = idle_lines(port, 5, kOther);
  const auto crowd = idle_lines(port, 12, kCrowd);
  EXPECT_EQ(closed(crowd), 7);
  EXPECT_FALSE(crowd.back().is_closed());
  EXPECT_EQ(closed(others), 0);
}

TEST_F(HttpLimitsTest, AnAddressHasSoManyRequestsOnTheirWay) {
  const int port = listen({.limits = {.requests = 2}});
  const auto begun = head("POST /api/v1/devices",
                          "Content-Type: application/json\r\nContent-Length: 14\r\n"
                          "Expect: 100-continue\r\n");
  std::deque<Line> crowd;
  for (int i = 0; i < 2; ++i) {
    crowd.emplace_back(port, kCrowd).send(begun);
    crowd.back().read_until("100 Continue");
  }
  const auto refused = ask(port, kCrowd);
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503")) << refused;
  EXPECT_NE(refused.find("Retry-After: "), std::string::npos);
  EXPECT_TRUE(ask(port, kOther).starts_with("HTTP/1.1 200"));
  crowd.front().send(R"({"name":"pi4"})");
  crowd.front().read_until("\"token\"");
  crowd.front().forget();
  crowd.front().send(head("GET /api/v1/health"));
  EXPECT_TRUE(crowd.front().read_until("\"version\"").starts_with("HTTP/1.1 200"));
}

TEST_F(HttpLimitsTest, AnAddressHasSoManyBytesInMemory) {
  const int port = listen({.limits = {.bytes = 100}});
  const auto begun = [this](const std::string& bytes) {
    return head("POST /api/v1/devices", "Content-Type: application/json\r\nContent-Length: " +
                                            bytes + "\r\nExpect: 100-continue\r\n");
  };
  Line first(port, kCrowd);
  first.send(begun("60"));
  first.read_until("100 Continue");
  Line second(port, kCrowd);
  second.send(begun("60"));
  EXPECT_TRUE(second.read_all().starts_with("HTTP/1.1 503"));
  Line other(port, kOther);
  other.send(begun("60"));
  EXPECT_TRUE(other.read_until("100 Continue").starts_with("HTTP/1.1 100"));
}

TEST_F(HttpLimitsTest, ATrustedProxyAsksForOthers) {
  const int port =
      listen({.limits = {.requests = 1}, .trusted_proxies = {parse_network("127.0.0.2").value()}});
  const auto begun = [this](const std::string& address) {
    return head("POST /api/v1/devices",
                "Content-Type: application/json\r\nContent-Length: 14\r\n"
                "Expect: 100-continue\r\nX-Forwarded-For: " +
                    address + "\r\n");
  };
  Line first(port, kCrowd);
  first.send(begun("198.51.100.7"));
  first.read_until("100 Continue");
  EXPECT_TRUE(ask(port, kCrowd, "X-Forwarded-For: 198.51.100.7\r\n").starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(ask(port, kCrowd, "X-Forwarded-For: 198.51.100.8\r\n").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(ask(port, kOther, "X-Forwarded-For: 198.51.100.7\r\n").starts_with("HTTP/1.1 200"))
      << "nobody else is taken at their word";
}

TEST_F(HttpLimitsTest, ProxiesHaveAsManyConnectionsAsThereAre) {
  const int port = listen(
      {.limits = {.connections = 2}, .trusted_proxies = {parse_network("127.0.0.2/31").value()}});
  EXPECT_EQ(closed(idle_lines(port, 10, kCrowd)), 0);
}

TEST_F(HttpLimitsTest, StreamsThatNobodyReadsHoldLittleAndTheSlowestEnd) {
  constexpr std::uint64_t kOfStream = 50'000;
  const int port =
      listen({.limits = {.stream_bytes = kOfStream, .all_stream_bytes = 3 * kOfStream}});
  std::deque<Line> asleep;
  for (int i = 0; i < 10; ++i) {
    asleep.emplace_back(port, kCrowd);
    asleep.back().send(head("GET /api/v1/events/stream"));
    asleep.back().read_until("retry:");
  }
  Line awake(port, kOther);
  awake.send(head("GET /api/v1/events/stream"));
  awake.read_until("retry:");
  const auto agent = add_device("pi4");
  constexpr int kEvents = 100;
  const std::string text(20'000, 'x');  // more than sockets hold for those that do not read
  for (int i = 1; i <= kEvents; ++i) {
    const auto reply = as_agent(agent, "events",
                                {{"events",
                                  {{{"sequence", i},
                                    {"time", "2026-01-01T00:00:00.000Z"},
                                    {"kind", "log"},
                                    {"body", {{"message", text}}}}}}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    awake.read_until("\n\n");
    awake.forget();
  }
  constexpr int kMayStay = 3;  // that have what all of them may have
  const auto gone = std::ssize(asleep) - kMayStay;
  for (int i = 0; i < 500 && ended(asleep) < gone; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(ended(asleep), gone);
  EXPECT_FALSE(awake.is_closed());
}

}  // namespace
}  // namespace fleetfit::server
