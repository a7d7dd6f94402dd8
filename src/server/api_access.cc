#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/app/tokens.h"
#include "fleetfit/core/version.h"
#include "fleetfit/fleet/messages.h"
#include "server/api_json.h"
#include "server/api_state.h"

namespace fleetfit::server {
namespace {

std::string cookie_header(const FleetApiOptions& options, std::string_view value, double age_s) {
  return fmt::format("fleetfit_session={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={:.0f}{}",
                     value, age_s, options.secure ? "; Secure" : "");
}

Json identity_json(const store::TokenRecord& token) {
  return {{"role", store::to_string(token.role)},
          {"name", token.name},
          {"device", token.device.empty() ? Json() : Json(token.device)},
          {"expires", time_or_null(token.expires)}};
}

Result<app::TokenRequest> parse_token_request(const core::JsonView& view) {
  app::TokenRequest request;
  FLEETFIT_TRY(view.allow_only({"name", "role", "expires", "device", "devices"}));
  FLEETFIT_ASSIGN(request.name, view.text("name"));
  FLEETFIT_ASSIGN(request.role, view.text("role").and_then([](const std::string& text) {
    return core::parse_name<store::Role>(text);
  }));
  FLEETFIT_ASSIGN(request.device, view.text_or("device", ""));
  FLEETFIT_ASSIGN(const auto devices, view.find("devices"));
  if (devices) {
    FLEETFIT_ASSIGN(request.devices, view.integer("devices", {.min = 0}));
  }
  FLEETFIT_ASSIGN(const auto expires, view.text_or("expires", ""));
  if (expires.empty()) return request;
  FLEETFIT_ASSIGN(request.expires, core::within("body: expires", parse_time(expires)));
  return request;
}

}  // namespace

Result<ApiReply> get_health(ApiState&, const Call&) {
  return json_reply({{"status", "ok"}, {"version", core::version()}});
}

Result<ApiReply> get_openapi(ApiState&, const Call&) {
  return ApiReply{.body = std::string(api_description())};
}

Result<ApiReply> post_session(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  const core::JsonView view(body, "body");
  FLEETFIT_TRY(view.allow_only({"token"}));
  FLEETFIT_ASSIGN(const auto secret, view.text("token"));
  FLEETFIT_ASSIGN(const auto asker,
                  find_caller(state, {.authorization = "Bearer " + secret}, call.now));
  const auto& caller = asker.caller;
  if (!caller) {
    state.log_refusal(call.request, "sign-in",
                      asker.refused.empty() ? "without text" : asker.refused);
    return refusal(401, "unauthorized", "the token is not valid");
  }
  const auto& token = caller->token;
  if (token.role == store::Role::agent)
    return refusal(403, "forbidden", "tokens of agents are not for signing in");
  const auto age_s = state.options().session_s;
  auto expires = state.later(call.now, age_s);
  if (token.expires) expires = std::min(expires, *token.expires);
  const auto value =
      state.sessions().open({.token_hash = token.hash, .expires = expires}, call.now);
  if (value.empty()) return fail(ErrorCode::io, "the system gives no random numbers");
  FLEETFIT_TRY(state.note({.request = call.request, .caller = *caller, .now = call.now},
                          "session.open", "from " + call.request.peer));
  auto reply = json_reply(identity_json(token));
  reply.headers.emplace_back("Set-Cookie", cookie_header(state.options(), value, age_s));
  return reply;
}

Result<ApiReply> get_session(ApiState&, const Call& call) {
  return json_reply(identity_json(call.caller.token));
}

Result<ApiReply> delete_session(ApiState& state, const Call& call) {
  state.sessions().close(call.caller.session);
  auto reply = json_reply(Json::object());
  reply.headers.emplace_back("Set-Cookie", cookie_header(state.options(), "", 0));
  return reply;
}

Result<ApiReply> get_tokens(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  FLEETFIT_ASSIGN(const auto after, call.query.integer("after", 0, {.min = 0}));
  FLEETFIT_ASSIGN(const auto tokens, state.fleet().list_tokens());
  auto items = Json::array();
  Json next;
  for (const auto& token : tokens) {
    if (token.id <= after) continue;
    if (items.size() == limit) {
      next = items.back().at("id");
      break;
    }
    items.push_back(to_json(token));
  }
  return page_reply(std::move(items), std::move(next));
}

Result<ApiReply> post_token(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  FLEETFIT_ASSIGN(const auto request, parse_token_request(core::JsonView(body, "body")));
  FLEETFIT_ASSIGN(const auto created, app::create_token(state.fleet(), request, call.now));
  FLEETFIT_TRY(state.note(call, "token.create",
                          fmt::format("{} {} {}", created.record.id,
                                      store::to_string(created.record.role), created.record.name)));
  auto json = to_json(created.record);
  json["token"] = created.token;
  return json_reply(json, 201);
}

Result<ApiReply> delete_token(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto id, parse_id(call.names.front(), "token"));
  FLEETFIT_ASSIGN(const auto revoked, state.fleet().revoke_token(id, call.now));
  if (!revoked)
    return fail(ErrorCode::not_found,
                fmt::format("there is no token {} that is not revoked yet", id));
  FLEETFIT_TRY(state.note(call, "token.revoke", fmt::format("{}", id)));
  return json_reply(Json::object());
}

Result<ApiReply> get_audit(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  FLEETFIT_ASSIGN(const auto after, call.query.integer("after", 0, {.min = 0}));
  FLEETFIT_ASSIGN(const auto entries, state.fleet().list_audit(after, limit));
  auto items = Json::array();
  for (const auto& entry : entries) items.push_back(to_json(entry));
  const Json next = entries.size() == limit ? Json(entries.back().id) : Json();
  return page_reply(std::move(items), next);
}

}  // namespace fleetfit::server
