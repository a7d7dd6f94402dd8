#include "fleetfit/server/serving_http.h"

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
// Each may hold one request in memory.
constexpr std::size_t kMostConnections = 64;

ApiReply serving_reply(int status, std::string json) {
  return {.status = status, .body = std::move(json) + "\n"};
}

ApiReply serving_refusal(int status, std::string_view message) {
  return serving_reply(status, core::format_json_line({{"error", message}}));
}

// Whether a request came by a name of this machine. A browser's page of somebody else does not.
bool is_local_name(std::string_view host) {
  const auto colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == host.npos;
  const auto name = has_port && host.back() != ']' ? host.substr(0, colon) : host;
  return name == "localhost" || name == "[::1]" || name.starts_with("127.");
}

// What speaks against a request, its body aside.
std::optional<ApiReply> objection(const ApiRequest& request) {
  const auto& method = request.method;
  if (!request.host.empty() && !is_local_name(request.host))
    return serving_refusal(400, "this server answers to programs on this machine only");
  if (request.path == kStatus) {
    if (method == "GET" || method == "HEAD") return std::nullopt;
    return serving_refusal(405, "/v1/status takes GET");
  }
  if (request.path == kPredict) {
    if (method == "POST") return std::nullopt;
    return serving_refusal(405, "/v1/predict takes POST");
  }
  return serving_refusal(404, "there are POST /v1/predict and GET /v1/status");
}

}  // namespace

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
  HttpServer server(api, nullptr,
                    {.address = address, .workers = kThreads, .most_connections = kMostConnections},
                    nullptr);
  FLEETFIT_ASSIGN(const auto bound, server.open());
  listening(to_text(bound));
  return server.run(stop);
}

}  // namespace fleetfit::server
