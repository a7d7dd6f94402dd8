#include "server/api_json.h"

#include <fmt/format.h>

#include "fleetfit/app/tokens.h"

namespace fleetfit::server {
Json time_or_null(const std::optional<store::Time>& time) {
  return time ? Json(time_text(*time)) : Json();
}

Json embedded(std::string_view text) {
  auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json::object() : json;
}

ApiReply json_reply(const Json& body, int status) {
  return {.status = status,
          .body = body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

ApiReply page_reply(Json items, Json next) {
  return json_reply({{"items", std::move(items)}, {"next", std::move(next)}});
}

Json to_json(const store::TokenRecord& token) {
  Json json{{"id", token.id},
            {"name", token.name},
            {"role", store::to_string(token.role)},
            {"device", token.device.empty() ? Json() : Json(token.device)},
            {"created", time_text(token.created)},
            {"expires", time_or_null(token.expires)},
            {"revoked", time_or_null(token.revoked)}};
  if (const auto most = app::most_devices(token)) json["devices"] = *most;
  return json;
}

Json to_json(const store::EventRecord& event) {
  Json json{{"id", event.id},
            {"time", time_text(event.time)},
            {"device", event.agent.empty() ? Json() : Json(event.agent)},
            {"job", core::or_null(event.job)},
            {"kind", event.kind},
            {"body", embedded(event.body)}};
  if (event.device_time) json["device_time"] = time_text(*event.device_time);
  return json;
}

Json to_json(const store::FileRecord& file) {
  return {{"hash", file.hash},
          {"name", file.name},
          {"bytes", file.bytes},
          {"kind", file.kind},
          {"created", time_text(file.created)}};
}

Json to_json(const store::AuditRecord& entry) {
  return {{"id", entry.id},
          {"time", time_text(entry.time)},
          {"token", entry.token == 0 ? Json() : Json(entry.token)},
          {"name", entry.name},
          {"action", entry.action},
          {"detail", entry.detail}};
}

Json job_json(const store::JobRecord& job) {
  return {{"id", job.id},
          {"device", job.agent},
          {"kind", job.kind},
          {"request", embedded(job.request)},
          {"limits", embedded(job.limits)},
          {"key", job.key.empty() ? Json() : Json(job.key)},
          {"state", store::to_string(job.state)},
          {"cancelling", job.cancel_requested && job.state == store::JobState::running},
          {"reason", job.reason},
          {"attempt", job.attempt},
          {"created", time_text(job.created)},
          {"started", time_or_null(job.started)},
          {"finished", time_or_null(job.ended)}};
}

Json whole_job_json(const store::JobRecord& job) {
  auto json = job_json(job);
  json["result"] = embedded(job.result);
  return json;
}

store::EventRecord job_event(const store::JobRecord& job, store::Time now) {
  const Json body{{"kind", job.kind},
                  {"state", store::to_string(job.state)},
                  {"reason", job.reason},
                  {"attempt", job.attempt}};
  return {.agent = job.agent,
          .job = job.id,
          .kind = "job",
          .body = body.dump(-1, ' ', false, Json::error_handler_t::replace),
          .time = now};
}

store::EventRecord device_event(std::string_view device, std::string_view what, store::Time now) {
  return {.agent = std::string(device),
          .kind = "device",
          .body = Json{{"state", what}}.dump(),
          .time = now};
}

Result<nlohmann::json> parse_body(const ApiRequest& request) {
  constexpr int kDepth = 50;
  auto body = core::parse_json(request.body, "body", {.max_depth = kDepth});
  if (!body) return body;
  if (!body->is_object()) return fail(ErrorCode::invalid_input, "body: expected an object");
  return body;
}

}  // namespace fleetfit::server
