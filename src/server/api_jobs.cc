#include <fmt/format.h>

#include <charconv>

#include "fleetfit/fleet/messages.h"
#include "server/api_json.h"
#include "server/api_state.h"

namespace fleetfit::server {
namespace {

/// An order for a job, as somebody has sent it.
Result<store::JobRecord> parse_job(const core::JsonView& view) {
  store::JobRecord job;
  FLEETFIT_TRY(view.allow_only({"device", "kind", "request", "key", "limits", "attempts"}));
  FLEETFIT_ASSIGN(auto device, view.text("device"));
  if (auto ok = fleet::check_name(device); !ok)
    return core::within("body: device", std::move(ok.error()));
  FLEETFIT_ASSIGN(auto kind, view.text("kind"));
  FLEETFIT_ASSIGN(auto key, view.text_or("key", ""));
  constexpr std::size_t kMostKey = 200;
  if (key.size() > kMostKey) return view.error("key: is longer than 200 bytes");
  FLEETFIT_ASSIGN(const auto attempts,
                  view.integer_or("attempts", job.most_attempts, {.min = 1, .max = 100}));
  job.agent = std::move(device);
  job.kind = std::move(kind);
  job.key = std::move(key);
  job.most_attempts = attempts;
  return job;
}

Result<fleet::JobLimits> limits_of(const core::JsonView& view) {
  FLEETFIT_ASSIGN(const auto field, view.find("limits"));
  if (!field) return fleet::JobLimits{};
  return fleet::parse_limits(*field);
}

Status check_files(ApiState& state, const fleet::JobRequest& request) {
  for (const auto& hash : fleet::files_of(request)) {
    FLEETFIT_ASSIGN(const auto file, state.fleet().find_file(hash));
    if (!file)
      return fail(ErrorCode::invalid_input,
                  fmt::format("body: request: there is no file {}; POST /files takes it", hash));
  }
  return {};
}

Result<store::JobRecord> find_job(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto id, parse_id(call.names.front(), "job"));
  FLEETFIT_ASSIGN(auto job, state.fleet().find_job(id));
  if (!job) return fail(ErrorCode::not_found, fmt::format("there is no job {}", id));
  return *std::move(job);
}

/// The job as it is in the store.
Result<store::JobRecord> add_job(ApiState& state, const store::JobRecord& job) {
  FLEETFIT_ASSIGN(const auto ids, state.fleet().add_jobs({&job, 1}));
  FLEETFIT_ASSIGN(auto added, state.fleet().find_job(ids.front()));
  if (!added) return fail(ErrorCode::io, "a job that was added is gone");
  return *std::move(added);
}

}  // namespace

Result<ApiReply> get_jobs(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  FLEETFIT_ASSIGN(const auto after, call.query.integer("after", 0, {.min = 0}));
  store::JobFilter filter{.agent = call.query.find("device"), .before = after, .limit = limit};
  if (const auto name = call.query.find("state")) {
    FLEETFIT_ASSIGN(filter.state, core::within("?state", core::parse_name<store::JobState>(*name)));
  }
  FLEETFIT_ASSIGN(const auto jobs, state.fleet().list_jobs(filter));
  auto items = Json::array();
  for (const auto& job : jobs) items.push_back(job_json(job));
  const Json next = jobs.size() == limit ? Json(jobs.back().id) : Json();
  return page_reply(std::move(items), next);
}

Result<ApiReply> post_job(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  const core::JsonView view(body, "body");
  FLEETFIT_ASSIGN(auto job, parse_job(view));
  FLEETFIT_ASSIGN(const auto field, view.at("request"));
  FLEETFIT_ASSIGN(const auto request, fleet::parse_request(job.kind, field));
  FLEETFIT_TRY(check_files(state, request));
  FLEETFIT_ASSIGN(const auto limits, limits_of(view));
  job.request = fleet::to_json(request).dump();
  job.limits = fleet::to_json(limits).dump();
  job.created = call.now;
  FLEETFIT_ASSIGN(const auto added, add_job(state, job));
  const bool is_new = added.created == call.now && added.attempt == 0;
  if (is_new) {
    FLEETFIT_TRY(state.tell(job_event(added, call.now)));
    FLEETFIT_TRY(state.note(call, "job.create",
                            fmt::format("{} {} on {}", added.id, added.kind, added.agent)));
  }
  return json_reply(whole_job_json(added), is_new ? 201 : 200);
}

Result<ApiReply> get_job(ApiState& state, const Call& call) {
  return find_job(state, call).map([](const store::JobRecord& job) {
    return json_reply(whole_job_json(job));
  });
}

Result<ApiReply> delete_job(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto job, find_job(state, call));
  FLEETFIT_ASSIGN(const auto cancelled, state.fleet().cancel_job(job.id, call.now));
  if (!cancelled)
    return refusal(409, "invalid_input", fmt::format("job {} has ended already", job.id));
  FLEETFIT_ASSIGN(const auto after, find_job(state, call));
  FLEETFIT_TRY(state.tell(job_event(after, call.now)));
  FLEETFIT_TRY(state.note(call, "job.cancel", fmt::format("{}", job.id)));
  return json_reply(whole_job_json(after));
}

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
