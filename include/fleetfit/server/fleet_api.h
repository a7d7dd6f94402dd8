#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"
#include "fleetfit/server/http_api.h"

/// A fleet's API as functions of a request (docs/fleet.md); no sockets here.
namespace fleetfit::server {

/// So many at once, and as many a second for ever.
struct RateLimit {
  double burst = 0;
  double per_second = 0;
};

/// How files that were sent are looked into before they are kept.
struct UploadLook {
  /// `fleetfit` itself, whose verb `upload-kind` does it in a process of its own, within these
  /// limits. Empty: it is done in this process.
  std::filesystem::path program = {};
  double seconds = 20;
  std::int64_t memory_bytes = std::int64_t{1} << 30;
};

struct FleetApiOptions {
  std::filesystem::path folder = {};  ///< for files that jobs need; made if need be
  bool secure = false;                ///< requests come over TLS
  double lease_s = 60;
  double online_s = 35;  ///< a device is online for so long after it was heard of
  double session_s = 12 * 3600;
  double keep_events_s = 30 * 24 * 3600.0;
  RateLimit of_token = {.burst = 400, .per_second = 200};  ///< for each token
  /// For each token of agents that is bound to no device: a fleet may share it.
  RateLimit of_shared_token = {.burst = 4000, .per_second = 2000};
  RateLimit of_address = {.burst = 20, .per_second = 0.5};  ///< sign-ins and wrong tokens
  /// Devices that register for the first time, for each token and each address.
  RateLimit of_new_devices = {.burst = 50, .per_second = 5};
  std::uint64_t most_json_bytes = std::uint64_t{1} << 20;
  std::uint64_t most_result_bytes = std::uint64_t{8} << 20;
  std::uint64_t most_file_bytes = std::uint64_t{2} << 30;
  UploadLook look = {};
  /// Gets what went wrong in the server itself; never a secret. From any thread.
  std::function<void(const std::string&)> log = {};
  /// Called when there are new events. From any thread.
  std::function<void()> events_added = {};
};

/// Also answers with the web page's files. `look_after` makes jobs whose leases have ended wait
/// again, takes devices that are not heard of any more for offline, and forgets old events.
class FleetApi : public HttpApi {
 public:
  /// Whether there is somebody who may do everything.
  virtual Result<bool> has_admin() = 0;
};

/// The workplace is borrowed. Fails with `io` if the folder cannot be made.
Result<std::unique_ptr<FleetApi>> make_fleet_api(app::Workplace& workplace,
                                                 FleetApiOptions options);

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
