#include <atomic>

#include "fleetfit/server/fleet_http.h"
#include "tests/server/line.h"
#include "tests/server/running_servers.h"

namespace fleetfit::server {
namespace {

class HttpServerTest : public FleetServerTest {
 protected:
  HttpServerTest() : port_(listen({})) {}

  std::string ask_line(const std::string& text) {
    Line line(port_);
    line.send(text);
    return line.read_all();
  }

  int port_;
};

constexpr const char* kClose = "Connection: close\r\n";

TEST_F(HttpServerTest, AnswersAndClosesWhenAsked) {
  const auto reply = ask_line(head("GET /api/v1/health", kClose));
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n")) << reply;
  EXPECT_NE(reply.find("X-Content-Type-Options: nosniff"), std::string::npos);
  EXPECT_NE(reply.find("\"status\":\"ok\""), std::string::npos);
}

TEST_F(HttpServerTest, OneConnectionTakesManyRequestsEvenAtOnce) {
  Line line(port_);
  line.send(head("GET /api/v1/health"));
  line.read_until("\"version\"");
  line.forget();
  line.send(head("GET /api/v1/session") + head("HEAD /api/v1/session") +
            head("GET /api/v1/summary", kClose));
  const auto replies = line.read_all();
  EXPECT_NE(replies.find("\"role\":\"admin\""), std::string::npos);
  EXPECT_EQ(replies.find("\"role\""), replies.rfind("\"role\"")) << "HEAD has no body";
  EXPECT_NE(replies.find("\"newest_event\""), std::string::npos);
}

TEST_F(HttpServerTest, BodiesMayComeInPieces) {
  const std::string body = R"({"name":"pi4"})";
  const auto request =
      head("POST /api/v1/devices", "Content-Type: application/json\r\nContent-Length: " +
                                       std::to_string(body.size()) + "\r\n" + kClose) +
      body;
  Line line(port_);
  for (const char c : request) line.send(std::string(1, c));
  EXPECT_TRUE(line.read_all().starts_with("HTTP/1.1 201 Created"));
}

TEST_F(HttpServerTest, RefusesWhatIsTooLargeBeforeItHasCome) {
  const auto length = [](const char* bytes) { return std::string("Content-Length: ") + bytes; };
  const auto json = std::string("Content-Type: application/json\r\n");
  EXPECT_TRUE(ask_line(head("POST /api/v1/jobs", json + length("2000000\r\n")))
                  .starts_with("HTTP/1.1 413"));
  EXPECT_TRUE(ask_line(head("POST /api/v1/files?name=a.bin", length("3000000000\r\n")))
                  .starts_with("HTTP/1.1 413"));
  EXPECT_TRUE(ask_line(head("GET /api/v1/jobs", length("5\r\n"))).starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(ask_line("POST /api/v1/files?name=a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
                  .starts_with("HTTP/1.1 401"));
  EXPECT_TRUE(ask_line("GET /" + std::string(20'000, 'a')).starts_with("HTTP/1.1 431"));
  EXPECT_TRUE(ask_line("\x16\x03\x01 this is TLS\r\n\r\n").starts_with("HTTP/1.1 400"));
}

TEST_F(HttpServerTest, AFileGoesInAndOut) {
  std::string content;
  for (int i = 0; i < 300'000; ++i) content += static_cast<char>(i * 7 % 256);
  const auto reply =
      ask_line(head("POST /api/v1/files?name=data.bin",
                    "Expect: 100-continue\r\nContent-Length: 300000\r\n" + std::string(kClose)) +
               content);
  ASSERT_NE(reply.find("HTTP/1.1 201 Created"), std::string::npos) << reply;
  const auto hash = core::sha256_hex(content);
  EXPECT_NE(reply.find(hash), std::string::npos);
  const auto back = ask_line(head("GET /api/v1/files/" + hash, kClose));
  EXPECT_TRUE(back.ends_with("\r\n\r\n" + content));
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path() / "files" / "incoming"));
}

TEST_F(HttpServerTest, EventsComeAsTheyHappen) {
  Line line(port_);
  line.send(head("GET /api/v1/events/stream"));
  line.read_until("retry:");
  post("/devices", {{"name", "pi4"}});
  const auto text = line.read_until("\"added\"");
  EXPECT_NE(text.find("Content-Type: text/event-stream"), std::string::npos);
  EXPECT_NE(text.find("id: 1\ndata: {\"id\":1,"), std::string::npos) << text;
  Line late(port_);
  late.send(head("GET /api/v1/events/stream", "Last-Event-ID: 0\r\n"));
  EXPECT_NE(late.read_until("\"added\"").find("id: 1\n"), std::string::npos);
}

TEST_F(HttpServerTest, StreamsLeaveTheThreadsToOthers) {
  std::vector<std::unique_ptr<Line>> streams;
  for (int i = 0; i < 50; ++i) {
    streams.push_back(std::make_unique<Line>(port_));
    streams.back()->send(head("GET /api/v1/events/stream"));
    streams.back()->read_until("retry:");
  }
  EXPECT_TRUE(ask_line(head("GET /api/v1/health", kClose)).starts_with("HTTP/1.1 200"));
}

TEST(ServeFleet, RefusesOthersWithoutTls) {
  class NoApi final : public FleetApi {
    Admission admit(const ApiRequest&) override { return {}; }
    ApiReply answer(const ApiRequest&) override { return {}; }
    ApiReply refuse(int, std::string_view, std::string_view) const override { return {}; }
    Status look_after() override { return {}; }
    Result<bool> has_admin() override { return true; }
    Result<std::vector<StreamedEvent>> events_after(std::int64_t, std::size_t) override {
      return std::vector<StreamedEvent>();
    }
  } api;
  Bell bell;
  const auto served =
      serve_fleet(api, bell, {.address = {"0.0.0.0", 0}}, [](const std::string&) {}, {});
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::invalid_input);
  const auto no_file = serve_fleet(
      api, bell, {.address = {"127.0.0.1", 0}, .certificate = "/no/cert.pem", .key = "/no/key.pem"},
      [](const std::string&) {}, {});
  ASSERT_FALSE(no_file);
  EXPECT_NE(no_file.error().message.find("/no/cert.pem"), std::string::npos);
}

}  // namespace
}  // namespace fleetfit::server
