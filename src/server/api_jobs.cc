#include <fmt/format.h>

#include "fleetfit/fleet/messages.h"
#include "server/api_json.h"
#include "server/api_state.h"

namespace fleetfit::server {
namespace {

/// An order for a job, as somebody has sent it.
Result<store::JobRecord> parse_job(const core::JsonView& view) {
  store::JobRecord job;
  if (auto ok = view.allow_only({"device", "kind", "request", "key", "limits", "attempts"}); !ok)
    return tl::unexpected(ok.error());
  auto device = view.text("device");
  if (!device) return tl::unexpected(device.error());
  if (auto ok = fleet::check_name(*device); !ok)
    return core::within("body: device", std::move(ok.error()));
  auto kind = view.text("kind");
  if (!kind) return tl::unexpected(kind.error());
  auto key = view.text_or("key", "");
  if (!key) return tl::unexpected(key.error());
  constexpr std::size_t kMostKey = 200;
  if (key->size() > kMostKey) return view.error("key: is longer than 200 bytes");
  const auto attempts = view.integer_or("attempts", job.most_attempts, {.min = 1, .max = 100});
  if (!attempts) return tl::unexpected(attempts.error());
  job.agent = *std::move(device);
  job.kind = *std::move(kind);
  job.key = *std::move(key);
  job.most_attempts = *attempts;
  return job;
}

Result<fleet::JobLimits> limits_of(const core::JsonView& view) {
  const auto field = view.find("limits");
  if (!field) return tl::unexpected(field.error());
  if (!*field) return fleet::JobLimits{};
  return fleet::parse_limits(**field);
}

Status check_files(ApiState& state, const fleet::JobRequest& request) {
  for (const auto& hash : fleet::files_of(request)) {
    const auto file = state.fleet().find_file(hash);
    if (!file) return tl::unexpected(file.error());
    if (!*file)
      return fail(ErrorCode::invalid_input,
                  fmt::format("body: request: there is no file {}; POST /files takes it", hash));
  }
  return {};
}

Result<store::JobRecord> find_job(ApiState& state, const Call& call) {
  const auto id = parse_id(call.names.front(), "job");
  if (!id) return tl::unexpected(id.error());
  auto job = state.fleet().find_job(*id);
  if (!job) return tl::unexpected(job.error());
  if (!*job) return fail(ErrorCode::not_found, fmt::format("there is no job {}", *id));
  return *std::move(*job);
}

/// The job as it is in the store.
Result<store::JobRecord> add_job(ApiState& state, const store::JobRecord& job) {
  const auto ids = state.fleet().add_jobs({&job, 1});
  if (!ids) return tl::unexpected(ids.error());
  auto added = state.fleet().find_job(ids->front());
  if (!added) return tl::unexpected(added.error());
  if (!*added) return fail(ErrorCode::io, "a job that was added is gone");
  return *std::move(*added);
}

}  // namespace

Result<ApiReply> get_jobs(ApiState& state, const Call& call) {
  const auto limit = call.query.limit();
  if (!limit) return tl::unexpected(limit.error());
  const auto after = call.query.integer("after", 0, {.min = 0});
  if (!after) return tl::unexpected(after.error());
  store::JobFilter filter{.agent = call.query.find("device"), .before = *after, .limit = *limit};
  if (const auto name = call.query.find("state")) {
    const auto job_state = store::parse_job_state(*name);
    if (!job_state) return core::within("?state", job_state.error());
    filter.state = *job_state;
  }
  const auto jobs = state.fleet().list_jobs(filter);
  if (!jobs) return tl::unexpected(jobs.error());
  auto items = Json::array();
  for (const auto& job : *jobs) items.push_back(job_json(job));
  const Json next = jobs->size() == *limit ? Json(jobs->back().id) : Json();
  return page_reply(std::move(items), next);
}

Result<ApiReply> post_job(ApiState& state, const Call& call) {
  const auto body = parse_body(call.request);
  if (!body) return tl::unexpected(body.error());
  const core::JsonView view(*body, "body");
  auto job = parse_job(view);
  if (!job) return tl::unexpected(job.error());
  const auto field = view.at("request");
  if (!field) return tl::unexpected(field.error());
  const auto request = fleet::parse_request(job->kind, *field);
  if (!request) return tl::unexpected(request.error());
  if (auto ok = check_files(state, *request); !ok) return tl::unexpected(ok.error());
  const auto limits = limits_of(view);
  if (!limits) return tl::unexpected(limits.error());
  job->request = fleet::to_json(*request).dump();
  job->limits = fleet::to_json(*limits).dump();
  job->created = call.now;
  const auto added = add_job(state, *job);
  if (!added) return tl::unexpected(added.error());
  const bool is_new = added->created == call.now && added->attempt == 0;
  if (is_new) {
    const auto event = job_event(*added, call.now);
    if (auto ok = state.tell({&event, 1}); !ok) return tl::unexpected(ok.error());
    if (auto ok = state.note(call, "job.create",
                             fmt::format("{} {} on {}", added->id, added->kind, added->agent));
        !ok) {
      return tl::unexpected(ok.error());
    }
  }
  return json_reply(whole_job_json(*added), is_new ? 201 : 200);
}

Result<ApiReply> get_job(ApiState& state, const Call& call) {
  return find_job(state, call).map([](const store::JobRecord& job) {
    return json_reply(whole_job_json(job));
  });
}

Result<ApiReply> delete_job(ApiState& state, const Call& call) {
  const auto job = find_job(state, call);
  if (!job) return tl::unexpected(job.error());
  const auto cancelled = state.fleet().cancel_job(job->id, call.now);
  if (!cancelled) return tl::unexpected(cancelled.error());
  if (!*cancelled)
    return refusal(409, "invalid_input", fmt::format("job {} has ended already", job->id));
  const auto after = find_job(state, call);
  if (!after) return tl::unexpected(after.error());
  const auto event = job_event(*after, call.now);
  if (auto ok = state.tell({&event, 1}); !ok) return tl::unexpected(ok.error());
  if (auto ok = state.note(call, "job.cancel", fmt::format("{}", job->id)); !ok)
    return tl::unexpected(ok.error());
  return json_reply(whole_job_json(*after));
}

}  // namespace fleetfit::server
