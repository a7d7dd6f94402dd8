#include "fleetfit/measure/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/json_fields.h"

namespace fleetfit::measure {
namespace {

constexpr int kLeastRuns = 6;
constexpr int kMostSessions = 1000;
constexpr double kDaySeconds = 86'400;

Status check_range(std::string_view field, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("{}: {} is not in {} to {}", field, value, low, high));
}

}  // namespace

Protocol protocol_within(double max_time_s) {
  Protocol protocol{.max_time_s = max_time_s};
  protocol.min_time_s = std::min(protocol.min_time_s, max_time_s / 2);
  return protocol;
}

Protocol one_of_sessions(Protocol protocol, int sessions) {
  protocol.sessions = sessions;
  protocol.max_time_s /= sessions;
  protocol.min_time_s /= sessions;
  return protocol;
}

Status check(const Protocol& p) {
  return check_range("target", p.target, 1e-4, 1)
      .and_then([&] { return check_range("max_warmup_s", p.max_warmup_s, 0, kDaySeconds); })
      .and_then([&] { return check_range("min_time_s", p.min_time_s, 0, kDaySeconds); })
      .and_then([&] { return check_range("mean_time_s", p.mean_time_s, 0, kDaySeconds); })
      .and_then([&] { return check_range("max_time_s", p.max_time_s, 1e-3, kDaySeconds); })
      .and_then([&] { return check_range("min_runs", p.min_runs, kLeastRuns, 1e6); })
      .and_then([&] { return check_range("max_runs", p.max_runs, p.min_runs, 1e6); })
      .and_then([&] { return check_range("request_ms", p.request_ms, 0, 60'000); })
      .and_then([&] { return check_range("pause_ms", p.pause_ms, 0, 60'000); })
      .and_then([&] { return check_range("sessions", p.sessions, 1, kMostSessions); });
}

nlohmann::json to_json(const Protocol& p) {
  nlohmann::json json = {{"target", p.target},         {"max_warmup_s", p.max_warmup_s},
                         {"min_time_s", p.min_time_s}, {"mean_time_s", p.mean_time_s},
                         {"max_time_s", p.max_time_s}, {"min_runs", p.min_runs},
                         {"max_runs", p.max_runs},     {"request_ms", p.request_ms},
                         {"operators", p.operators}};
  // Agents of older versions know neither pauses nor sessions, and are asked for none but here.
  if (p.pause_ms > 0) json["pause_ms"] = p.pause_ms;
  if (p.sessions > 1) json["sessions"] = p.sessions;
  return json;
}

Result<Protocol> protocol_from_json(const core::JsonView& json) {
  Protocol p;
  JsonFields fields(json);
  fields.allow_only({"target", "max_warmup_s", "min_time_s", "mean_time_s", "max_time_s",
                     "min_runs", "max_runs", "request_ms", "pause_ms", "sessions", "operators"});
  fields.number("target", p.target);
  fields.number("max_warmup_s", p.max_warmup_s);
  fields.number("min_time_s", p.min_time_s);
  fields.number("mean_time_s", p.mean_time_s);
  fields.number("max_time_s", p.max_time_s);
  fields.integer("min_runs", p.min_runs);
  fields.integer("max_runs", p.max_runs);
  fields.number("request_ms", p.request_ms);
  fields.number("pause_ms", p.pause_ms);
  fields.integer("sessions", p.sessions);
  fields.boolean("operators", p.operators);
  FLEETFIT_TRY(fields.status());
  const auto checked = check(p);
  if (!checked) return json.error(checked.error().message);
  return p;
}

}  // namespace fleetfit::measure
