#include "fleetfit/server/fleet_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <set>

#include "fleetfit/app/tokens.h"
#include "server/api_json.h"
#include "server/api_routes.h"
#include "server/api_state.h"

namespace fleetfit::server {
namespace {

constexpr std::string_view kPrefix = "/api/v1";

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input:
    case ErrorCode::unsupported:
      return 400;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::io:
    case ErrorCode::device_failed:
    case ErrorCode::unstable:
    case ErrorCode::cancelled:
    case ErrorCode::internal:
      break;
  }
  return 500;
}

bool is_among(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const auto end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

bool is_json_type(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  return type == kJson || (type.starts_with(kJson) && type[kJson.size()] == ';');
}

/// A route that fits, with what stood in its path.
struct Found {
  const Route* route = nullptr;
  std::vector<std::string> names = {};
};

ApiReply wrong_method(const std::set<std::string_view>& allowed) {
  std::string list;
  for (const auto method : allowed) list += (list.empty() ? "" : ", ") + std::string(method);
  auto reply = refusal(405, "wrong_method", "this path takes " + list);
  reply.headers.emplace_back("Allow", list);
  return reply;
}

tl::expected<Found, ApiReply> find_route(std::string_view method, std::string_view path) {
  const auto parts = split_path(path);
  if (!parts) return tl::unexpected(refusal(404, "not_found", "there is no such path"));
  std::set<std::string_view> allowed;
  for (const auto& route : routes()) {
    auto names = match(route.pattern, *parts);
    if (!names) continue;
    // "/events/stream" is no event called "stream": the first pattern that fits is meant.
    if (route.method == method) return Found{&route, *std::move(names)};
    allowed.insert(route.method);
  }
  if (allowed.empty()) return tl::unexpected(refusal(404, "not_found", "there is no such path"));
  return tl::unexpected(wrong_method(allowed));
}

std::optional<ApiReply> check_caller(const ApiRequest& request, const Route& route,
                                     const std::optional<Caller>& caller) {
  if (route.roles.empty()) return std::nullopt;
  if (!caller) {
    auto reply = refusal(401, "unauthorized", "a valid token is needed");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    return reply;
  }
  const auto role = store::to_string(caller->token.role);
  if (!is_among(route.roles, role))
    return refusal(403, "forbidden", fmt::format("tokens of the role {} may not do this", role));
  // Pages of others can make a browser send its cookie, but not this header.
  if (caller->by_cookie() && route.method != "GET" && request.from_page != "1")
    return refusal(403, "forbidden", "the header X-Fleetfit: 1 is needed beside a cookie");
  return std::nullopt;
}

std::optional<ApiReply> check_type(const ApiRequest& request, const Route& route) {
  const bool takes_json = route.body == Body::json || route.body == Body::results;
  if (!takes_json || is_json_type(request.content_type)) return std::nullopt;
  return refusal(415, "invalid_input", "expected a body of the type application/json");
}

/// As many agents as one likes may have it.
bool is_shared(const store::TokenRecord& token) {
  return token.role == store::Role::agent && token.device.empty();
}

std::string name_of(const Route& route) {
  return fmt::format("{} {}{}", route.method, kPrefix, route.pattern);
}

class Api final : public FleetApi {
 public:
  Api(app::Workplace& workplace, FleetApiOptions options) : state_(workplace, std::move(options)) {}

  /// Devices that were online when the server was stopped are to be missed if they do not come
  /// back; and the first page is not to wait until all measurements are read.
  Status remember() {
    const auto now = state_.now();
    FLEETFIT_ASSIGN(
        const auto agents,
        state_.fleet().list_agents(
            {.seen_since = state_.online_since(now), .limit = 1'000'000, .probes = false}));
    for (const auto& agent : agents) state_.presence().seen(agent.name, *agent.last_seen);
    return state_.latencies().refresh();
  }

  Admission admit(const ApiRequest& head) override;
  ApiReply answer(const ApiRequest& request) override;
  ApiReply refuse(int status, std::string_view code, std::string_view message) const override {
    return refusal(status, code, message);
  }
  Status look_after() override;
  Result<bool> has_admin() override;
  Result<std::vector<StreamedEvent>> events_after(std::int64_t id, std::size_t most) override;

 private:
  struct Admitted {
    Found found = {};
    Caller caller = {};
    store::Time now = {};
  };
  enum class Stage : std::uint8_t { head, whole };
  tl::expected<Admitted, ApiReply> check(const ApiRequest& request, Stage stage);
  enum class Counting : std::uint8_t { take, look };
  std::optional<ApiReply> over_limit(const ApiRequest& request, const Route& route,
                                     const std::optional<Caller>& caller, Counting counting);
  ApiReply answer_route(const ApiRequest& request, Admitted admitted);
  ApiReply failure(const Error& error) const;
  Status tell_of_devices_gone(store::Time now);
  Status forget_old_events(store::Time now);

  ApiState state_;
  std::atomic<std::int64_t> cleaned_ms_ = 0;
};

/// Refused requests for want of a valid token count against the address, others against the token,
/// whatever else they say of who sends them.
std::optional<ApiReply> Api::over_limit(const ApiRequest& request, const Route& route,
                                        const std::optional<Caller>& caller, Counting counting) {
  const auto now = state_.workplace().clock.now();
  const auto& options = state_.options();
  const bool signs_in = route.function == post_session;
  const bool by_address = signs_in || (!caller && !route.roles.empty());
  if (!by_address && !caller) return std::nullopt;
  auto& limiter = by_address ? state_.address_limiter() : state_.limiter();
  const auto who =
      by_address ? network_of(request.peer) : fmt::format("token {}", caller->token.id);
  const auto& limit = by_address                 ? options.of_address
                      : is_shared(caller->token) ? options.of_shared_token
                                                 : options.of_token;
  const auto wait =
      counting == Counting::take ? limiter.take(who, limit, now) : limiter.look(who, limit, now);
  if (wait) return too_many(*wait);
  return std::nullopt;
}

tl::expected<Api::Admitted, ApiReply> Api::check(const ApiRequest& request, Stage stage) {
  const auto path = std::string_view(request.path).substr(kPrefix.size());
  const auto method = request.method == "HEAD" ? "GET" : request.method;
  FLEETFIT_ASSIGN(auto found, find_route(method, path));
  const auto now = state_.now();
  auto asker = find_caller(state_, request, now);
  if (!asker) return tl::unexpected(failure(asker.error()));
  const auto& route = *found.route;
  auto refused = check_caller(request, route, asker->caller);
  if (!refused) refused = check_type(request, route);
  // What is refused with a body ends with its head; everything else comes to be answered, and is
  // counted then. A body is not waited for if its sender is over the limit already.
  const bool has_body = request.body_bytes > 0;
  const bool ends = stage == Stage::whole || (refused && has_body);
  if (ends && !asker->refused.empty() && !route.roles.empty())
    state_.log_refusal(request, name_of(route), asker->refused);
  if (ends || has_body) {
    const auto counting = ends ? Counting::take : Counting::look;
    if (auto limited = over_limit(request, route, asker->caller, counting))
      return tl::unexpected(*std::move(limited));
  }
  if (refused) return tl::unexpected(*std::move(refused));
  return Admitted{std::move(found), asker->caller.value_or(Caller{}), now};
}

Admission Api::admit(const ApiRequest& head) {
  const auto& options = state_.options();
  if (!head.path.starts_with(kPrefix)) return {};
  auto admitted = check(head, Stage::head);
  if (!admitted) return {.refused = std::move(admitted.error())};
  switch (admitted->found.route->body) {
    case Body::none:
      break;
    case Body::json:
      return {.most_bytes = options.most_json_bytes};
    case Body::results:
      return {.most_bytes = options.most_result_bytes};
    case Body::file:
      return {.most_bytes = options.most_file_bytes, .to_file = true};
  }
  return {};
}

ApiReply Api::failure(const Error& error) const {
  const int status = status_of(error.code);
  if (status < 500) return refusal(status, core::to_string(error.code), error.message);
  state_.log(error.message);
  return refusal(status, "internal", "the server failed; its log says why");
}

ApiReply Api::answer_route(const ApiRequest& request, Admitted admitted) {
  const auto& route = *admitted.found.route;
  auto query = Query::parse(request.query, route.query);
  if (!query) return failure(query.error());
  const Call call{.request = request,
                  .caller = admitted.caller,
                  .query = *std::move(query),
                  .names = std::move(admitted.found.names),
                  .now = admitted.now};
  const auto compute = [&] { return route.function(state_, call); };
  auto reply = route.is_shared
                   ? state_.shared_answers().get(fmt::format("{}?{}", request.path, request.query),
                                                 request.since, compute)
                   : compute();
  return reply ? *std::move(reply) : failure(reply.error());
}

ApiReply Api::answer(const ApiRequest& request) {
  const auto path = std::string_view(request.path);
  if (path != kPrefix && !path.starts_with(std::string(kPrefix) + "/")) {
    if (path.starts_with("/api/")) return refusal(404, "not_found", "the API is under /api/v1");
    return answer_page(request);
  }
  try {
    auto admitted = check(request, Stage::whole);
    if (!admitted) return std::move(admitted.error());
    auto reply = answer_route(request, *std::move(admitted));
    reply.headers.emplace_back("Cache-Control", "no-store");
    return reply;
  } catch (const std::exception& error) {
    // Out of memory, at worst: this request is lost, the server is not.
    state_.log(fmt::format("{} {}: {}", request.method, request.path, error.what()));
    return refusal(500, "internal", "the server failed; its log says why");
  }
}

Status Api::tell_of_devices_gone(store::Time now) {
  std::vector<store::EventRecord> events;
  for (const auto& name : state_.presence().gone(state_.online_since(now)))
    events.push_back(device_event(name, "offline", now));
  return state_.tell(events);
}

Status Api::forget_old_events(store::Time now) {
  constexpr std::int64_t kHourMs = 3'600'000;
  const auto ms = now.time_since_epoch().count();
  if (ms - cleaned_ms_ < kHourMs) return {};
  cleaned_ms_ = ms;
  return state_.fleet()
      .remove_events_before(state_.later(now, -state_.options().keep_events_s))
      .map([](std::int64_t) {});
}

Status Api::look_after() {
  state_.log_due_refusals();
  const auto now = state_.now();
  FLEETFIT_ASSIGN(const auto taken, state_.fleet().take_back_jobs(now));
  std::vector<store::EventRecord> events;
  for (const auto& job : taken) events.push_back(job_event(job, now));
  FLEETFIT_TRY(state_.tell(events));
  FLEETFIT_TRY(tell_of_devices_gone(now));
  return forget_old_events(now);
}

Result<bool> Api::has_admin() {
  FLEETFIT_ASSIGN(const auto tokens, state_.fleet().list_tokens());
  const auto now = state_.now();
  return std::ranges::any_of(tokens, [&](const store::TokenRecord& token) {
    return token.role == store::Role::admin && app::is_valid(token, now);
  });
}

Result<std::vector<StreamedEvent>> Api::events_after(std::int64_t id, std::size_t most) {
  FLEETFIT_ASSIGN(const auto events, state_.fleet().list_events({.after = id, .limit = most}));
  std::vector<StreamedEvent> all;
  for (const auto& event : events)
    all.push_back({event.id, to_json(event).dump(-1, ' ', false, Json::error_handler_t::replace)});
  return all;
}

}  // namespace

Result<std::unique_ptr<FleetApi>> make_fleet_api(app::Workplace& workplace,
                                                 FleetApiOptions options) {
  std::error_code error;
  std::filesystem::create_directories(options.folder / "incoming", error);
  if (error)
    return fail(ErrorCode::io, fmt::format("{}: {}", options.folder.string(), error.message()));
  auto api = std::make_unique<Api>(workplace, std::move(options));
  FLEETFIT_TRY(api->remember());
  return std::unique_ptr<FleetApi>(std::move(api));
}

ApiReply refusal(int status, std::string_view code, std::string_view message) {
  return json_reply({{"error", {{"code", code}, {"message", message}}}}, status);
}

}  // namespace fleetfit::server
