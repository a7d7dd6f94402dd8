#include "fleetfit/server/serving_http.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fleetfit/core/json.h"
#include "server/http_server.h"

namespace fleetfit::server {
namespace {

constexpr std::string_view kPredict = "/v1/predict";
constexpr std::string_view kStatus = "/v1/status";

// Subnets serve one request after the other; the other threads read the next ones and
// answer how things stand.
constexpr std::size_t kThreads = 4;
constexpr std::size_t kMostConnections = 256;
constexpr std::uint16_t kHttpPort = 80;  // a host that names no port means this one
constexpr std::size_t kRequestsInMemory = 64;
constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;

ApiReply serving_reply(int status, std::string json) {
  return {.status = status, .body = std::move(json) + "\n"};
}

ApiReply serving_refusal(int status, std::string_view message) {
  return serving_reply(status, core::format_json_line({{"error", message}}));
}

bool is_port(std::string_view text, std::uint16_t port) {
  std::uint16_t named = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), named);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() &&
         (port == 0 || named == port);
}

bool is_loopback_name(std::string_view name) {
  if (name == "[::1]") return true;
  return name.find(':') == std::string_view::npos && is_loopback({.host = std::string(name)});
}

// Whether a request came by a name of this machine. One of a browser's page of somebody else does
// not, even if the name of that one's machine leads here ("127.example.org").
bool is_local_host(std::string_view host, std::uint16_t port) {
  const auto colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && !host.ends_with(']');
  const auto name = has_port ? host.substr(0, colon) : host;
  if (has_port && !is_port(host.substr(colon + 1), port)) return false;
  if (name == "localhost") return true;
  return is_loopback_name(name) && (has_port || port == 0 || port == kHttpPort);
}

bool is_json(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  const auto end = std::min(type.find_first_of("; \t"), type.size());
  return std::ranges::equal(type.substr(0, end), kJson, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
  });
}

}  // namespace

// What speaks against a request, its body aside.
std::optional<ApiReply> ServingApi::objection(const ApiRequest& request) const {
  const auto& method = request.method;
  if (!request.host.empty() && !is_local_host(request.host, port_))
    return serving_refusal(400, "this server answers to programs on this machine only");
  if (!request.origin.empty() && request.origin != "http://" + request.host)
    return serving_refusal(403, "pages of other servers may not ask this one");
  if (request.path == kStatus) {
    if (method == "GET" || method == "HEAD") return std::nullopt;
    return serving_refusal(405, "/v1/status takes GET");
  }
  if (request.path == kPredict) {
    if (method != "POST") return serving_refusal(405, "/v1/predict takes POST");
    if (is_json(request.content_type)) return std::nullopt;
    return serving_refusal(415, "expected a body of the type application/json");
  }
  return serving_refusal(404, "there are POST /v1/predict and GET /v1/status");
}

Admission ServingApi::admit(const ApiRequest& head) {
  return {.refused = objection(head),
          .most_bytes = head.path == kPredict ? serving_.most_request_bytes() : 0};
}

ApiReply ServingApi::answer(const ApiRequest& request) {
  if (auto refused = objection(request)) return *std::move(refused);
  try {
    if (request.path == kStatus) return serving_reply(200, core::format_json(serving_.status()));
    auto reply = serving_.answer(request.body);
    return serving_reply(reply.ok ? 200 : 400, std::move(reply.json));
  } catch (const std::exception&) {
    return serving_refusal(500, "the request broke the server");
  }
}

ApiReply ServingApi::refuse(int status, std::string_view /*code*/, std::string_view message) const {
  return serving_refusal(status, message);
}

Result<std::vector<StreamedEvent>> ServingApi::events_after(std::int64_t /*id*/,
                                                            std::size_t /*most*/) {
  return std::vector<StreamedEvent>{};
}

Status serve_http(app::Serving& serving, const Address& address,
                  const std::function<void(const std::string&)>& listening,
                  const std::stop_token& stop) {
  ServingApi api(serving);
  // Who asks is on this machine; all of them together are what is limited.
  const std::uint64_t most_bytes =
      std::max<std::uint64_t>(kLeastBytes, kRequestsInMemory * serving.most_request_bytes());
  HttpServer server(api, nullptr,
                    {.address = address,
                     .workers = kThreads,
                     .limits = {.all_connections = kMostConnections,
                                .connections = kMostConnections,
                                .requests = kMostConnections,
                                .all_bytes = most_bytes,
                                .bytes = most_bytes}},
                    nullptr);
  FLEETFIT_ASSIGN(const auto bound, server.open());
  api.serve_at(bound.port);
  listening(to_text(bound));
  return server.run(stop);
}

}  // namespace fleetfit::server
