#include "server/http_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace fleetfit::server {
namespace {

constexpr std::string_view kEnd = "\r\n\r\n";
constexpr std::size_t kMostHeaders = 100;
constexpr std::size_t kMostTarget = 8192;
constexpr std::size_t kMostMethod = 20;

tl::unexpected<HttpProblem> refuse(int status, std::string message) {
  return tl::unexpected(HttpProblem{status, std::move(message)});
}

/// A letter, a digit or one of the others.
bool is_one_of(char c, std::string_view others) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         others.find(c) != std::string_view::npos;
}

bool is_token_character(char c) { return is_one_of(c, "!#$%&'*+-.^_`|~"); }
bool is_host_character(char c) { return is_one_of(c, ".-_:[]"); }

bool is_visible(char c) { return c > ' ' && c < 0x7f; }

bool is_value_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= ' ' && byte != 0x7f);
}

std::string lower(std::string_view text) {
  std::string small(text);
  for (auto& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

tl::expected<void, HttpProblem> read_target(std::string_view target, HttpHead& head) {
  if (target.size() > kMostTarget) return refuse(414, "the path is too long");
  if (!target.starts_with('/') || !std::ranges::all_of(target, is_visible) ||
      target.find('#') != std::string_view::npos) {
    return refuse(400, "the path is none");
  }
  const auto question = std::min(target.find('?'), target.size());
  head.path = target.substr(0, question);
  head.query = target.substr(std::min(question + 1, target.size()));
  return {};
}

bool is_version(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  constexpr std::size_t kLength = 8;  // "HTTP/1.1"
  return text.size() == kLength && text.starts_with("HTTP/") && is_digit(text[5]) &&
         text[6] == '.' && is_digit(text[7]);
}

tl::expected<void, HttpProblem> read_request_line(std::string_view line, HttpHead& head) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return refuse(400, "the first line of the request is broken");
  head.method = line.substr(0, first);
  if (head.method.empty() || head.method.size() > kMostMethod ||
      !std::ranges::all_of(head.method, is_token_character)) {
    return refuse(400, "the method is none");
  }
  const auto version = line.substr(last + 1);
  if (version == "HTTP/1.0") {
    head.is_1_0 = true;
    head.keep_alive = false;
  } else if (!is_version(version)) {
    return refuse(400, "the first line of the request is broken");
  } else if (version != "HTTP/1.1") {
    return refuse(505, "this server speaks HTTP/1.1");
  }
  return read_target(line.substr(first + 1, last - first - 1), head);
}

/// Some programs take "_" in a name for "-": for them this would be a header that says where a body
/// ends.
bool looks_like_framing(std::string name) {
  if (name.find('_') == std::string::npos) return false;
  std::ranges::replace(name, '_', '-');
  return name == "content-length" || name == "transfer-encoding";
}

tl::expected<void, HttpProblem> read_header(std::string_view line, HttpHead& head) {
  const auto colon = line.find(':');
  const auto name = line.substr(0, colon);
  if (colon == std::string_view::npos || name.empty() ||
      !std::ranges::all_of(name, is_token_character)) {
    return refuse(400, "a header is broken");
  }
  const auto value = trim(line.substr(colon + 1));
  if (!std::ranges::all_of(value, is_value_character)) return refuse(400, "a header is broken");
  if (head.headers.size() == kMostHeaders) return refuse(431, "there are too many headers");
  head.headers.emplace_back(lower(name), value);
  if (looks_like_framing(head.headers.back().first)) return refuse(400, "a header is broken");
  return {};
}

std::size_t count_of(const HttpHead& head, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count(
      head.headers, name, [](const auto& h) { return std::string_view(h.first); }));
}

/// Headers of which a second one would leave open what is meant.
tl::expected<void, HttpProblem> check_once(const HttpHead& head) {
  for (const std::string_view name :
       {"content-length", "transfer-encoding", "content-encoding", "expect", "host", "origin",
        "authorization", "content-type", "x-fleetfit", "last-event-id"}) {
    if (count_of(head, name) > 1)
      return refuse(400, fmt::format("the header {} is there twice", name));
  }
  return {};
}

/// One number, written as everybody writes it: what else there is ("+5", "5, 5", "005", "0x5",
/// nothing) is read in several ways by the programs that may stand before this one.
tl::expected<void, HttpProblem> read_length(std::string_view text, HttpHead& head) {
  const bool is_plain = text == "0" || (!text.empty() && text.front() != '0');
  const auto read = std::from_chars(text.data(), text.data() + text.size(), head.content_length);
  if (!is_plain || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return refuse(400, "Content-Length is no number");
  return {};
}

/// Where the body ends. A doubt about it is refused: a proxy that sees another end than this server
/// lets somebody hide a request behind another one.
tl::expected<void, HttpProblem> read_framing(HttpHead& head) {
  const bool has_length = count_of(head, "content-length") > 0;
  if (count_of(head, "transfer-encoding") > 0) {
    if (has_length || head.is_1_0 || lower(head.header("transfer-encoding")) != "chunked")
      return refuse(400, "it is in doubt where the body ends");
    return refuse(411, "bodies are taken with a Content-Length alone");
  }
  const auto encoding = lower(head.header("content-encoding"));
  if (!encoding.empty() && encoding != "identity")
    return refuse(415, "bodies are taken as they are, not compressed");
  if (!has_length) return {};
  return read_length(head.header("content-length"), head);
}

/// A name or an address, and a port.
tl::expected<void, HttpProblem> check_host(const HttpHead& head) {
  const auto host = head.header("host");
  if (host.empty() && !head.is_1_0) return refuse(400, "the header Host is missing");
  if (!std::ranges::all_of(host, is_host_character)) return refuse(400, "the header Host is none");
  return {};
}

tl::expected<void, HttpProblem> read_connection(HttpHead& head) {
  for (const auto& [name, value] : head.headers) {
    if (name == "connection" && lower(value).find("close") != std::string::npos)
      head.keep_alive = false;
  }
  const auto expect = lower(head.header("expect"));
  if (!expect.empty() && expect != "100-continue")
    return refuse(417, "nothing but 100-continue can be expected");
  head.expects_continue = !expect.empty();
  return {};
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return status < 400 ? "OK" : "Refused";
  }
}

void add_header(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text += ": ";
  std::ranges::copy_if(value, std::back_inserter(text), is_value_character);
  text += "\r\n";
}

}  // namespace

std::string_view HttpHead::header(std::string_view name) const {
  const auto at =
      std::ranges::find(headers, name, [](const auto& h) { return std::string_view(h.first); });
  return at == headers.end() ? std::string_view() : std::string_view(at->second);
}

std::optional<std::size_t> head_length(std::string_view text) {
  const auto at = text.substr(0, kMostHeadBytes).find(kEnd);
  if (at == std::string_view::npos) return std::nullopt;
  return at + kEnd.size();
}

bool cannot_be_head(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return true;
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    if (at == 0 || text[at - 1] != '\r') return true;
  return false;
}

tl::expected<HttpHead, HttpProblem> parse_head(std::string_view text) {
  HttpHead head;
  bool is_first = true;
  while (!text.empty()) {
    const auto end = text.find("\r\n");
    if (end == std::string_view::npos) return refuse(400, "a line of the head has no end");
    const auto line = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (line.empty()) break;
    FLEETFIT_TRY(is_first ? read_request_line(line, head) : read_header(line, head));
    is_first = false;
  }
  if (is_first) return refuse(400, "the first line of the request is broken");
  FLEETFIT_TRY(check_once(head));
  FLEETFIT_TRY(check_host(head));
  FLEETFIT_TRY(read_framing(head));
  FLEETFIT_TRY(read_connection(head));
  return head;
}

std::string format_head(const ApiReply& reply, std::optional<std::uint64_t> length,
                        const ReplyFlags& flags) {
  auto text = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, reason_of(reply.status));
  add_header(text, "Content-Type", reply.type);
  if (length) add_header(text, "Content-Length", fmt::format("{}", *length));
  add_header(text, "Connection", flags.keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : reply.headers) add_header(text, name, value);
  for (const auto& [name, value] : security_headers(flags.secure)) add_header(text, name, value);
  const bool says_cache = std::ranges::any_of(
      reply.headers, [](const auto& header) { return header.first == "Cache-Control"; });
  if (!says_cache) add_header(text, "Cache-Control", "no-store");
  return text + "\r\n";
}

std::vector<std::pair<std::string, std::string>> security_headers(bool secure) {
  std::vector<std::pair<std::string, std::string>> headers = {
      {"Content-Security-Policy",
       "default-src 'self'; img-src 'self' data:; "
       "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  if (secure)
    headers.emplace_back("Strict-Transport-Security", "max-age=31536000; includeSubDomains");
  return headers;
}

}  // namespace fleetfit::server
