#include "fleetfit/server/serving_http.h"

#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "fleetfit/core/json.h"

namespace fleetfit::server {
namespace {

using namespace std::chrono_literals;

constexpr const char* kJson = "application/json";
constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kNotFound = 404;
constexpr int kWrongMethod = 405;
constexpr std::size_t kThreads = 4;  // requests are served one after the other in any case
constexpr time_t kPatienceS = 5;

std::string error_body(std::string_view message) {
  return core::format_json_line({{"error", message}});
}

HttpReply refuse(int status, std::string_view message) {
  return {.status = status, .body = error_body(message)};
}

/// Addresses by which a browser's page of somebody else does not come to us.
bool is_local_name(std::string_view host) {
  const auto colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == host.npos;
  const auto name = has_port && host.back() != ']' ? host.substr(0, colon) : host;
  return name == "localhost" || name == "[::1]" || name.starts_with("127.");
}

void answer(app::Serving& serving, const httplib::Request& request, httplib::Response& response) {
  const auto host = request.get_header_value("Host");
  const auto reply =
      host.empty() || is_local_name(host)
          ? respond(serving, {.method = request.method, .path = request.path, .body = request.body})
          : refuse(kBadRequest, "this server answers to programs on this machine only");
  response.status = reply.status;
  response.set_content(reply.body + "\n", kJson);
}

void set_up(httplib::Server& http, app::Serving& serving) {
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http.set_payload_max_length(serving.most_request_bytes());
  http.set_read_timeout(kPatienceS);
  http.set_write_timeout(kPatienceS);
  http.set_keep_alive_timeout(1);  // how long a stop may take
  const auto handle = [&serving](const httplib::Request& request, httplib::Response& response) {
    answer(serving, request, response);
  };
  http.Get(".*", handle);
  http.Post(".*", handle);
  http.Put(".*", handle);
  http.Delete(".*", handle);
  http.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    const auto text = fmt::format("the request was refused with status {}", response.status);
    response.set_content(error_body(text) + "\n", kJson);
  });
  http.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
        constexpr int kInternal = 500;
        response.status = kInternal;
        response.set_content(error_body("the request broke the server") + "\n", kJson);
      });
}

/// The port, or -1 if it cannot be used.
int bind(httplib::Server& http, const Address& address) {
  if (address.port == 0) return http.bind_to_any_port(address.host);
  return http.bind_to_port(address.host, address.port) ? address.port : -1;
}

}  // namespace

HttpReply respond(app::Serving& serving, const HttpRequest& request) {
  if (request.path == "/v1/status") {
    if (request.method != "GET" && request.method != "HEAD")
      return refuse(kWrongMethod, "/v1/status takes GET");
    return {.status = kOk, .body = core::format_json(serving.status())};
  }
  if (request.path == "/v1/predict") {
    if (request.method != "POST") return refuse(kWrongMethod, "/v1/predict takes POST");
    auto reply = serving.answer(request.body);
    return {.status = reply.ok ? kOk : kBadRequest, .body = std::move(reply.json)};
  }
  return refuse(kNotFound, "there are POST /v1/predict and GET /v1/status");
}

Status serve_http(app::Serving& serving, const Address& address,
                  const std::function<void(const std::string&)>& listening,
                  const std::stop_token& stop) {
  httplib::Server http;
  set_up(http, serving);
  Address bound = address;
  const int port = bind(http, address);
  if (port < 0)
    return fail(ErrorCode::io, fmt::format("{}: the address cannot be used", to_text(address)));
  bound.port = static_cast<std::uint16_t>(port);
  std::jthread listener([&http] { http.listen_after_bind(); });
  while (!http.is_running()) std::this_thread::sleep_for(1ms);
  listening(to_text(bound));
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, stop, [] { return false; });
  http.stop();
  return {};
}

}  // namespace fleetfit::server
