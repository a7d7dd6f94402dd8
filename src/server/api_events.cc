#include <fmt/format.h>

#include <charconv>

#include "server/api_json.h"
#include "server/api_state.h"

namespace fleetfit::server {

Result<ApiReply> get_events(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  FLEETFIT_ASSIGN(const auto after, call.query.integer("after", -1, {.min = 0}));
  FLEETFIT_ASSIGN(const auto job, call.query.integer("job", 0, {.min = 1}));
  const bool goes_on = after >= 0;
  store::EventFilter filter{.agent = call.query.find("device"),
                            .kind = call.query.find("kind"),
                            .after = std::max<std::int64_t>(after, 0),
                            .newest = !goes_on,
                            .limit = limit};
  if (job > 0) filter.job = job;
  FLEETFIT_ASSIGN(const auto events, state.fleet().list_events(filter));
  auto items = Json::array();
  for (const auto& event : events) items.push_back(to_json(event));
  const bool more = goes_on && events.size() == limit;
  return page_reply(std::move(items), more ? Json(events.back().id) : Json());
}

Result<ApiReply> get_event_stream(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto asked, call.query.integer("after", -1, {.min = 0}));
  std::int64_t after = asked;
  const auto& header = call.request.last_event_id;
  if (!header.empty()) {
    const auto read = std::from_chars(header.data(), header.data() + header.size(), after);
    if (read.ec != std::errc() || read.ptr != header.data() + header.size() || after < 0)
      return fail(ErrorCode::invalid_input, "Last-Event-ID: expected the number of an event");
  }
  if (after < 0) {
    FLEETFIT_ASSIGN(after, state.fleet().newest_event());
  }
  return ApiReply{.type = "text/event-stream", .events_after = after};
}

}  // namespace fleetfit::server
