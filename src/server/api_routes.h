#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/server/fleet_api.h"
#include "fleetfit/store/fleet_records.h"

/// The table of routes, and what their functions are given.
namespace fleetfit::server {

class ApiState;

/// Who asks.
struct Caller {
  store::TokenRecord token = {};
  std::string session = {};  ///< hash of the cookie's value; empty: came with a token

  bool by_cookie() const { return !session.empty(); }
};

/// Parameters behind the '?', decoded. Errors name them.
class Query {
 public:
  /// Fails with `invalid_input` on what cannot be decoded and on a name that comes twice or is none
  /// of `known` (names with spaces between).
  static Result<Query> parse(std::string_view text, std::string_view known);

  std::optional<std::string> find(std::string_view name) const;
  std::string text(std::string_view name) const { return find(name).value_or(""); }
  Result<std::int64_t> integer(std::string_view name, std::int64_t fallback,
                               const core::IntegerRange& range) const;
  /// "a,b,c"; empty if it is absent.
  std::vector<std::string> list(std::string_view name) const;
  /// `limit`: 1 to 1000, 100 if it is absent.
  Result<std::size_t> limit() const;

 private:
  std::map<std::string, std::string, std::less<>> values_ = {};
};

/// A request on its way through a route's function.
struct Call {
  const ApiRequest& request;
  const Caller& caller;
  Query query = {};
  std::vector<std::string> names = {};  ///< what stood for {…} in the pattern
  store::Time now = {};
};

using RouteFunction = Result<ApiReply> (*)(ApiState& state, const Call& call);

enum class Body : std::uint8_t { none, json, results, file };

struct Route {
  std::string_view method;
  std::string_view pattern;
  std::string_view roles;  ///< with spaces between; empty: nobody has to be signed in
  std::string_view query;
  Body body;
  RouteFunction function;
  bool is_shared = false;  ///< who may ask gets the same as everybody else
};

std::span<const Route> routes();

/// Percent signs decoded. Nothing if it is no UTF-8, has a control character or a broken sign.
std::optional<std::string> decode_url(std::string_view text);

/// The parts of a path between slashes, decoded; nothing if one is empty, "." or "..", or cannot be
/// decoded, or has a slash in it.
std::optional<std::vector<std::string>> split_path(std::string_view path);

/// What stands for the {…}, if the path is one of the pattern.
std::optional<std::vector<std::string>> match(std::string_view pattern,
                                              std::span<const std::string> path);

/// A number in a path; `not_found` if the text is none: "there is no job x".
Result<std::int64_t> parse_id(const std::string& text, std::string_view what);

/// docs/formats/api.json.
std::string_view api_description();

/// A file of the web page. Paths without a dot are views of the page itself.
ApiReply answer_page(const ApiRequest& request);

// Sessions, tokens, audit: api_access.cc.
Result<ApiReply> get_health(ApiState& state, const Call& call);
Result<ApiReply> get_openapi(ApiState& state, const Call& call);
Result<ApiReply> post_session(ApiState& state, const Call& call);
Result<ApiReply> get_session(ApiState& state, const Call& call);
Result<ApiReply> delete_session(ApiState& state, const Call& call);
Result<ApiReply> get_tokens(ApiState& state, const Call& call);
Result<ApiReply> post_token(ApiState& state, const Call& call);
Result<ApiReply> delete_token(ApiState& state, const Call& call);
Result<ApiReply> get_audit(ApiState& state, const Call& call);
// api_devices.cc
Result<ApiReply> get_summary(ApiState& state, const Call& call);
Result<ApiReply> get_devices(ApiState& state, const Call& call);
Result<ApiReply> post_device(ApiState& state, const Call& call);
Result<ApiReply> get_device(ApiState& state, const Call& call);
Result<ApiReply> delete_device(ApiState& state, const Call& call);
Result<ApiReply> get_pareto(ApiState& state, const Call& call);
// api_models.cc
Result<ApiReply> get_models(ApiState& state, const Call& call);
Result<ApiReply> get_latencies(ApiState& state, const Call& call);
Result<ApiReply> get_correlations(ApiState& state, const Call& call);
Result<ApiReply> get_measurements(ApiState& state, const Call& call);
Result<ApiReply> get_measurement(ApiState& state, const Call& call);
// api_files.cc
Result<ApiReply> post_file(ApiState& state, const Call& call);
Result<ApiReply> get_file(ApiState& state, const Call& call);
Result<ApiReply> get_files(ApiState& state, const Call& call);
// Jobs and events: api_jobs.cc.
Result<ApiReply> get_jobs(ApiState& state, const Call& call);
Result<ApiReply> post_job(ApiState& state, const Call& call);
Result<ApiReply> get_job(ApiState& state, const Call& call);
Result<ApiReply> delete_job(ApiState& state, const Call& call);
Result<ApiReply> get_events(ApiState& state, const Call& call);
Result<ApiReply> get_event_stream(ApiState& state, const Call& call);
// api_studies.cc
Result<ApiReply> get_studies(ApiState& state, const Call& call);
Result<ApiReply> get_study(ApiState& state, const Call& call);
Result<ApiReply> get_trials(ApiState& state, const Call& call);
Result<ApiReply> get_charts(ApiState& state, const Call& call);
// api_agents.cc
Result<ApiReply> post_register(ApiState& state, const Call& call);
Result<ApiReply> post_heartbeat(ApiState& state, const Call& call);
Result<ApiReply> post_claim(ApiState& state, const Call& call);
Result<ApiReply> post_results(ApiState& state, const Call& call);
Result<ApiReply> post_events(ApiState& state, const Call& call);

}  // namespace fleetfit::server
