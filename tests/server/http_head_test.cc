#include "server/http_head.h"

#include <gtest/gtest.h>

namespace fleetfit::server {
namespace {

int refused(const std::string& text) {
  const auto head = parse_head(text);
  return head ? 0 : head.error().status;
}

TEST(HttpHead, ReadsARequest) {
  const std::string text =
      "POST /api/v1/jobs?limit=2&x=%20 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 12\r\n"
      "X-Fleetfit:1 \r\nConnection: Keep-Alive\r\n\r\n{\"a\":1}";
  const auto length = head_length(text);
  ASSERT_TRUE(length);
  EXPECT_EQ(text.substr(*length), "{\"a\":1}");
  const auto head = parse_head(text.substr(0, *length));
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->path, "/api/v1/jobs");
  EXPECT_EQ(head->query, "limit=2&x=%20");
  EXPECT_EQ(head->content_length, 12u);
  EXPECT_EQ(head->header("x-fleetfit"), "1");
  EXPECT_TRUE(head->keep_alive);
  EXPECT_FALSE(head->expects_continue);
}

TEST(HttpHead, KnowsWhenMoreIsToCome) {
  EXPECT_FALSE(head_length("GET / HTTP/1.1\r\nHost: a\r\n"));
  EXPECT_FALSE(head_length(std::string(kMostHeadBytes, 'a') + "\r\n\r\n"));
}

TEST(HttpHead, SaysWhetherTheConnectionStays) {
  EXPECT_FALSE(parse_head("GET / HTTP/1.0\r\n\r\n")->keep_alive);
  EXPECT_FALSE(parse_head("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")->keep_alive);
}

TEST(HttpHead, RefusesWhatCouldBeUnderstoodInTwoWays) {
  const std::string start = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(refused(start + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + "Transfer-Encoding: chunked\r\n\r\n"), 411);
  EXPECT_EQ(refused(start + "Content-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + "Content-Length: 1,2\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + "Content-Length: 99999999999999999999\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + "Content-Length : 1\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + "Host: b\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + " folded: 1\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + "Content-Encoding: gzip\r\n\r\n"), 415);
  EXPECT_EQ(refused(start + "Expect: money\r\n\r\n"), 417);
  EXPECT_EQ(refused(start + "A: b\nC: d\r\n\r\n"), 400);
  EXPECT_EQ(refused(start + std::string("A: \0\r\n\r\n", 8)), 400);
}

TEST(HttpHead, KnowsEarlyWhatCannotBecomeAHead) {
  EXPECT_FALSE(cannot_be_head("GET / HTTP/1.1\r\nHost: a\r\n"));
  EXPECT_FALSE(cannot_be_head("GET / HTTP/1.1\r"));
  EXPECT_TRUE(cannot_be_head("GET / HTTP/1.1\nHost: a"));
  EXPECT_TRUE(cannot_be_head("\n"));
  EXPECT_TRUE(cannot_be_head(std::string("GET /\0", 6)));
}

TEST(HttpHead, RefusesHostsThatAreNone) {
  for (const std::string host : {"a b", "a,b", "a/b", "a@b", "a?b", "a\\b", "a\xff", "<a>", "*"})
    EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"), 400) << host;
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), 0);
}

TEST(HttpHead, RefusesBrokenFirstLines) {
  for (const auto* line :
       {"", "GET", "GET /", "GET  HTTP/1.1", "GET x HTTP/1.1", "GET http://a/ HTTP/1.1",
        "G(T / HTTP/1.1", "GET /a b HTTP/1.1", "GET /#a HTTP/1.1", " GET / HTTP/1.1"}) {
    EXPECT_EQ(refused(std::string(line) + "\r\nHost: a\r\n\r\n"), 400) << line;
  }
  EXPECT_EQ(refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 101; ++i) many += "A: b\r\n";
  EXPECT_EQ(refused(many + "\r\n"), 431);
}

TEST(HttpHead, AnswersCarryTheSecurityHeadersAndNoSecondHeader) {
  const ApiReply reply{.headers = {{"X-Test", "a\r\nSet-Cookie: b"}}};
  const auto text = format_head(reply, 3, {.secure = true});
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(text.ends_with("\r\n\r\n"));
  for (const auto* header :
       {"Content-Security-Policy: default-src 'self'", "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY", "Referrer-Policy: no-referrer",
        "Strict-Transport-Security: ", "Cache-Control: no-store", "Content-Length: 3\r\n"}) {
    EXPECT_NE(text.find(header), std::string::npos) << header;
  }
  EXPECT_EQ(text.find("\r\nSet-Cookie"), std::string::npos);
}

}  // namespace
}  // namespace fleetfit::server
