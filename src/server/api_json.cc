#include "server/api_json.h"

#include <fmt/format.h>

#include <charconv>

namespace fleetfit::server {
namespace {

using std::chrono::milliseconds;

/// A number of just so many digits at a place; -1 if there is none.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  int number = -1;
  const auto part = text.substr(std::min(at, text.size()), count);
  if (part.size() != count || part.front() < '0' || part.front() > '9') return -1;
  const auto read = std::from_chars(part.data(), part.data() + part.size(), number);
  return read.ptr == part.data() + part.size() ? number : -1;
}

/// ".25Z" or "Z" as milliseconds; -1 on another text.
int fraction_ms(std::string_view text) {
  if (text == "Z") return 0;
  if (text.size() < 3 || text.front() != '.' || text.back() != 'Z') return -1;
  int ms = 0;
  int unit = 100;
  for (const char c : text.substr(1, text.size() - 2)) {
    if (c < '0' || c > '9') return -1;
    ms += (c - '0') * unit;
    unit /= 10;
  }
  return ms;
}

}  // namespace

std::string time_text(store::Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

Json time_or_null(const std::optional<store::Time>& time) {
  return time ? Json(time_text(*time)) : Json();
}

Result<store::Time> parse_time(std::string_view text) {
  using namespace std::chrono;
  const auto refused = fail(ErrorCode::invalid_input,
                            fmt::format("expected a time such as 2026-11-16T08:00:00.000Z, not "
                                        "\"{}\"",
                                        text.substr(0, 40)));
  constexpr std::size_t kSeconds = 19;
  if (text.size() <= kSeconds || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
      text[13] != ':' || text[16] != ':') {
    return refused;
  }
  const int month_number = digits(text, 5, 2);
  const int day_number = digits(text, 8, 2);
  const int hour = digits(text, 11, 2);
  const int minute = digits(text, 14, 2);
  const int second = digits(text, 17, 2);
  const int ms = fraction_ms(text.substr(kSeconds));
  const auto date = year(digits(text, 0, 4)) / month(static_cast<unsigned>(month_number)) /
                    day(static_cast<unsigned>(day_number));
  if (digits(text, 0, 4) < 1970 || month_number < 0 || day_number < 0 || !date.ok() || hour < 0 ||
      hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 || ms < 0) {
    return refused;
  }
  return store::Time(sys_days(date)) + hours(hour) + minutes(minute) + seconds(second) +
         milliseconds(ms);
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
  return {{"id", token.id},
          {"name", token.name},
          {"role", store::to_string(token.role)},
          {"device", token.device.empty() ? Json() : Json(token.device)},
          {"created", time_text(token.created)},
          {"expires", time_or_null(token.expires)},
          {"revoked", time_or_null(token.revoked)}};
}

Json to_json(const store::EventRecord& event) {
  return {{"id", event.id},
          {"time", time_text(event.time)},
          {"device", event.agent.empty() ? Json() : Json(event.agent)},
          {"job", core::or_null(event.job)},
          {"kind", event.kind},
          {"body", embedded(event.body)}};
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

Result<nlohmann::json> parse_body(const ApiRequest& request) {
  constexpr int kDepth = 50;
  auto body = core::parse_json(request.body, "body", {.max_depth = kDepth});
  if (!body) return body;
  if (!body->is_object()) return fail(ErrorCode::invalid_input, "body: expected an object");
  return body;
}

}  // namespace fleetfit::server
