#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"

/// Requests and replies of HTTP as plain values, and what answers them; no sockets here.
namespace fleetfit::server {

/// A body that was written to a file while it came.
struct Upload {
  std::filesystem::path file = {};
  std::string sha256 = {};
  std::uint64_t bytes = 0;
};

struct ApiRequest {
  std::string method = {};
  std::string path = {};   ///< as it was sent, without the query
  std::string query = {};  ///< as it was sent, without '?'
  std::string host = {};
  std::string origin = {};
  std::string authorization = {};
  std::string cookie = {};
  std::string content_type = {};
  std::string from_page = {};      ///< the header X-Fleetfit
  std::string last_event_id = {};  ///< the header Last-Event-ID
  std::string if_none_match = {};
  std::string peer = {};         ///< address of who asks
  std::uint64_t body_bytes = 0;  ///< of the body, as the head says
  /// The request had begun to come by then, if that is known.
  std::optional<std::chrono::steady_clock::time_point> since = std::nullopt;
  std::string body = {};
  std::optional<Upload> upload = std::nullopt;  ///< in place of a body
};

struct ApiReply {
  int status = 200;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  std::optional<std::filesystem::path> file = std::nullopt;  ///< its content in place of the body
  /// Events with ids above this one follow as they happen, as server-sent events, in place of the
  /// body.
  std::optional<std::int64_t> events_after = std::nullopt;
};

/// What is known before the body of a request has come.
struct Admission {
  std::optional<ApiReply> refused = std::nullopt;  ///< to be answered at once
  std::uint64_t most_bytes = 0;                    ///< of the body
  bool to_file = false;                            ///< the body is to be an Upload
};

/// An event as it goes over the line.
struct StreamedEvent {
  std::int64_t id = 0;
  std::string json = {};
};

/// What answers requests. Safe to use from many threads.
class HttpApi {
 public:
  virtual ~HttpApi() = default;

  /// Whether a request may come in, judged by all but its body. One with a body that may not ends
  /// here, all others are given to `answer`.
  virtual Admission admit(const ApiRequest& head) = 0;

  /// Whatever the request, there is a reply. May take long: other requests do not wait for it as
  /// long as there are threads left.
  virtual ApiReply answer(const ApiRequest& request) = 0;

  /// How a request is refused that could not even be read. `code` is one word for programs.
  virtual ApiReply refuse(int status, std::string_view code, std::string_view message) const = 0;

  /// Called every few seconds.
  virtual Status look_after() = 0;

  /// For streams of events. Oldest first, at most `most`.
  virtual Result<std::vector<StreamedEvent>> events_after(std::int64_t id, std::size_t most) = 0;
};

/// Headers that every answer has, whatever it is.
std::vector<std::pair<std::string, std::string>> security_headers(bool secure);

}  // namespace fleetfit::server
