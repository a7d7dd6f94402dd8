#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/server/line.h"
#include "tests/server/running_servers.h"
#include "tests/source_dir.h"

namespace fleetfit::server {
namespace {

using Json = nlohmann::json;

/// hostile_requests.json has octets as the characters of their numbers.
std::string octets(const std::string& utf8) {
  std::string all;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    if (byte < 0x80) {
      all += utf8[i];
    } else {
      all += static_cast<char>((byte & 3) << 6 | (utf8[++i] & 0x3f));
    }
  }
  return all;
}

std::string with(std::string text, const std::string& name, const std::string& value) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
  return text;
}

struct Hostile {
  std::string name;
  std::string text;
  int status = 400;
};

/// What a request stands for on one of the servers.
struct Target {
  std::string path;
  std::string headers;
  std::string smuggled;  ///< a request of its own, which nobody may see
};

std::string request_of(const Json& entry, const Target& target) {
  const auto body =
      with(octets(entry.value("body", "0\r\n\r\n<SMUGGLED>")), "<SMUGGLED>", target.smuggled);
  const auto start = octets(entry.value("start", "POST <PATH> HTTP/1.1"));
  const auto headers = octets(entry.at("headers").get<std::string>());
  return with(start, "<PATH>", target.path) + "\r\nHost: localhost\r\n" + target.headers +
         with(headers, "<LENGTH>", std::to_string(body.size())) + "\r\n" + body;
}

/// Octets that some programs take for a space, for nothing, or for the end of a line.
std::vector<std::string> odd_octets() {
  std::vector<std::string> all;
  for (int octet = 0; octet <= ' '; ++octet) all.emplace_back(1, static_cast<char>(octet));
  for (const int octet : {0x7f, 0x80, 0x85, 0xa0, 0xad, 0xff})
    all.emplace_back(1, static_cast<char>(octet));
  return all;
}

std::vector<Hostile> hostile_requests(const Target& target) {
  std::ifstream file(source_dir() + "/tests/server/hostile_requests.json");
  std::vector<Hostile> all;
  for (const auto& entry : Json::parse(file)) {
    const Hostile request{.name = entry.at("name"),
                          .text = request_of(entry, target),
                          .status = entry.value("status", 400)};
    if (request.text.find("<BYTE>") == std::string::npos) {
      all.push_back(request);
      continue;
    }
    for (const auto& octet : odd_octets())
      all.push_back(
          {.name = request.name + " (" + std::to_string(static_cast<unsigned char>(octet[0])) + ")",
           .text = with(request.text, "<BYTE>", octet),
           .status = request.status});
  }
  return all;
}

/// One answer, which refuses, and the end.
void expect_refused(int port, const Hostile& hostile) {
  Line line(port);
  line.send(hostile.text);
  const auto answer = line.read_all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::to_string(hostile.status) + " "))
      << hostile.name << ": " << answer;
  EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos) << hostile.name << ": " << answer;
}

class HostileRequestsTest : public FleetServerTest {};

TEST_F(HostileRequestsTest, AreRefusedByTheFleetsServerAndTheServerOfSubnets) {
  const Target fleets{
      .path = "/api/v1/devices",
      .headers = "Authorization: Bearer " + admin_ + "\r\nContent-Type: application/json\r\n",
      .smuggled =
          head("POST /api/v1/devices", "Content-Type: application/json\r\nContent-Length: 14\r\n") +
          R"({"name":"evil"})"};
  class CountingServing final : public EchoServing {
   public:
    adapt::Reply answer(std::string_view request) override {
      ++requests;
      return EchoServing::answer(request);
    }
    std::atomic<int> requests = 0;
  } serving;
  const Target subnets{.path = "/v1/predict",
                       .headers = "Content-Type: application/json\r\n",
                       .smuggled =
                           "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n"
                           "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"};
  const int fleets_port = listen({});
  const RunningServer server(serving);
  const auto to_fleet = hostile_requests(fleets);
  EXPECT_GT(to_fleet.size(), 300U);
  for (const auto& hostile : to_fleet) expect_refused(fleets_port, hostile);
  for (const auto& hostile : hostile_requests(subnets)) expect_refused(server.port(), hostile);
  EXPECT_EQ(get("/devices/evil").status, 404);
  EXPECT_EQ(serving.requests, 0);
  const std::string host = "Host: localhost\r\n";
  const auto good = with(subnets.smuggled, host, host + "Connection: close\r\n");
  EXPECT_TRUE(server.ask(good).ends_with("{}\n"));
}

}  // namespace
}  // namespace fleetfit::server
