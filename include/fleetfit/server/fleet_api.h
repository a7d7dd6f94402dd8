#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"

/// A fleet's API as functions of a request (docs/fleet.md); no sockets here.
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
  std::string authorization = {};
  std::string cookie = {};
  std::string content_type = {};
  std::string from_page = {};      ///< the header X-Fleetfit
  std::string last_event_id = {};  ///< the header Last-Event-ID
  std::string if_none_match = {};
  std::string peer = {};  ///< address of who asks
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

/// So many at once, and as many a second for ever.
struct RateLimit {
  double burst = 0;
  double per_second = 0;
};

struct FleetApiOptions {
  std::filesystem::path folder = {};  ///< for files that jobs need; made if need be
  bool secure = false;                ///< requests come over TLS
  double lease_s = 60;
  double online_s = 35;  ///< a device is online for so long after it was heard of
  double session_s = 12 * 3600;
  double keep_events_s = 30 * 24 * 3600.0;
  RateLimit of_token = {.burst = 400, .per_second = 200};   ///< for each token and device
  RateLimit of_address = {.burst = 20, .per_second = 0.5};  ///< sign-ins and wrong tokens
  std::uint64_t most_json_bytes = std::uint64_t{1} << 20;
  std::uint64_t most_result_bytes = std::uint64_t{8} << 20;
  std::uint64_t most_file_bytes = std::uint64_t{2} << 30;
  /// Told what went wrong in the server itself; never a secret. From any thread.
  std::function<void(const std::string&)> log = {};
  /// Told when there are new events. From any thread.
  std::function<void()> events_added = {};
};

/// An event as it goes over the line.
struct StreamedEvent {
  std::int64_t id = 0;
  std::string json = {};
};

/// Safe to use from many threads.
class FleetApi {
 public:
  virtual ~FleetApi() = default;

  /// Whether a request may come in, judged by all but its body.
  virtual Admission admit(const ApiRequest& head) = 0;

  /// Whatever the request, there is a reply. The web page's files are answered as well.
  virtual ApiReply answer(const ApiRequest& request) = 0;

  /// To be called every few seconds: jobs whose leases have ended wait again, devices that are not
  /// heard of any more are offline, old events are forgotten.
  virtual Status look_after() = 0;

  /// Whether there is somebody who may do everything.
  virtual Result<bool> has_admin() = 0;

  /// Oldest first, at most `most`.
  virtual Result<std::vector<StreamedEvent>> events_after(std::int64_t id, std::size_t most) = 0;
};

/// The workplace is borrowed. Fails with `io` if the folder cannot be made.
Result<std::unique_ptr<FleetApi>> make_fleet_api(app::Workplace& workplace,
                                                 FleetApiOptions options);

/// Headers that every answer has, whatever it is.
std::vector<std::pair<std::string, std::string>> security_headers(bool secure);

/// {"error":{"code","message"}}
ApiReply refusal(int status, std::string_view code, std::string_view message);

/// A route, for tests against the description in docs/formats/api.json.
struct RouteDescription {
  std::string_view method = {};
  std::string_view pattern = {};  ///< "/devices/{name}", under /api/v1
  std::string_view roles = {};    ///< "admin viewer"; empty: nobody has to be signed in
  std::string_view query = {};    ///< names of parameters, with spaces between
};
std::vector<RouteDescription> describe_routes();

}  // namespace fleetfit::server
