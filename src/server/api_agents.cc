#include <fmt/format.h>

#include "fleetfit/fleet/messages.h"
#include "server/api_json.h"
#include "server/api_state.h"
#include "server/job_results.h"

namespace fleetfit::server {
namespace {

constexpr double kHeartbeatS = 10;

Status tell_if_it_came(ApiState& state, const std::string& device, store::Time now) {
  if (!state.presence().seen(device, now)) return {};
  const store::EventRecord event{
      .agent = device, .kind = "device", .body = R"({"state":"online"})", .time = now};
  return state.tell({&event, 1});
}

/// The record that it is to have; what it serves is told by its heartbeats.
Result<store::AgentRecord> agent_of(ApiState& state, const fleet::Registration& registration,
                                    store::Time now) {
  const auto known = state.fleet().find_agent(registration.name);
  if (!known) return tl::unexpected(known.error());
  return store::AgentRecord{.name = registration.name,
                            .version = registration.version,
                            .hardware = registration.hardware,
                            .probe = registration.probe,
                            .serving = *known ? (*known)->serving : "{}",
                            .created = now,
                            .last_seen = now};
}

Json assignment_json(const store::JobRecord& job, double lease_s) {
  return {{"id", job.id},       {"attempt", job.attempt},
          {"kind", job.kind},   {"request", embedded(job.request)},
          {"lease_s", lease_s}, {"limits", embedded(job.limits)}};
}

}  // namespace

Result<ApiReply> post_register(ApiState& state, const Call& call) {
  const auto body = parse_body(call.request);
  if (!body) return tl::unexpected(body.error());
  const auto registration = fleet::parse_registration(core::JsonView(*body, "body"));
  if (!registration) return tl::unexpected(registration.error());
  const auto& bound = call.caller.token.device;
  const auto asked = call.query.text("device");
  if ((!bound.empty() && bound != registration->name) ||
      (!asked.empty() && asked != registration->name)) {
    return refusal(403, "forbidden", "the token is bound to another device");
  }
  const auto agent = agent_of(state, *registration, call.now);
  if (!agent) return tl::unexpected(agent.error());
  if (auto ok = state.fleet().save_agents({&*agent, 1}); !ok) return tl::unexpected(ok.error());
  if (auto ok = tell_if_it_came(state, agent->name, call.now); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = state.note(call, "agent.register", agent->name); !ok)
    return tl::unexpected(ok.error());
  const auto sequence = state.fleet().last_sequence(agent->name);
  if (!sequence) return tl::unexpected(sequence.error());
  return json_reply({{"name", agent->name},
                     {"heartbeat_s", kHeartbeatS},
                     {"lease_s", state.options().lease_s},
                     {"last_sequence", *sequence}});
}

Result<ApiReply> post_heartbeat(ApiState& state, const Call& call) {
  auto device = device_of(call);
  if (!device) return std::move(device.error());
  const auto body = parse_body(call.request);
  if (!body) return tl::unexpected(body.error());
  const auto heartbeat = fleet::parse_heartbeat(core::JsonView(*body, "body"));
  if (!heartbeat) return tl::unexpected(heartbeat.error());
  std::vector<store::FleetStore::Running> running;
  for (const auto& attempt : heartbeat->running) running.push_back({attempt.job, attempt.attempt});
  const auto lease_s = state.options().lease_s;
  auto cancel = state.fleet().heartbeat(*device, heartbeat->serving, running, call.now,
                                        state.later(call.now, lease_s));
  if (!cancel) return tl::unexpected(cancel.error());
  if (auto ok = tell_if_it_came(state, *device, call.now); !ok) return tl::unexpected(ok.error());
  const auto counts = state.fleet().count_jobs_of(*device);
  if (!counts) return tl::unexpected(counts.error());
  return json_reply(fleet::to_json(fleet::HeartbeatReply{
      .cancel = *std::move(cancel), .waiting = counts->waiting, .lease_s = lease_s}));
}

Result<ApiReply> post_claim(ApiState& state, const Call& call) {
  auto device = device_of(call);
  if (!device) return std::move(device.error());
  const auto body = parse_body(call.request);
  if (!body) return tl::unexpected(body.error());
  constexpr std::int64_t kMost = 100;
  const auto most = core::JsonView(*body, "body").integer_or("most", 1, {.min = 1, .max = kMost});
  if (!most) return tl::unexpected(most.error());
  const auto lease_s = state.options().lease_s;
  const auto jobs = state.fleet().claim_jobs(*device, call.now, state.later(call.now, lease_s),
                                             static_cast<std::size_t>(*most));
  if (!jobs) return tl::unexpected(jobs.error());
  auto list = Json::array();
  std::vector<store::EventRecord> events;
  for (const auto& job : *jobs) {
    list.push_back(assignment_json(job, lease_s));
    events.push_back(job_event(job, call.now));
  }
  if (auto ok = state.tell(events); !ok) return tl::unexpected(ok.error());
  return json_reply({{"jobs", std::move(list)}});
}

Result<ApiReply> post_results(ApiState& state, const Call& call) {
  auto device = device_of(call);
  if (!device) return std::move(device.error());
  const auto body = parse_body(call.request);
  if (!body) return tl::unexpected(body.error());
  const auto outcomes = fleet::parse_outcomes(core::JsonView(*body, "body"));
  if (!outcomes) return tl::unexpected(outcomes.error());
  const auto ended = keep_results(state, *device, *outcomes, call.now);
  if (!ended) return tl::unexpected(ended.error());
  constexpr std::string_view kNames[] = {"now", "already", "lost"};
  auto list = Json::array();
  for (std::size_t i = 0; i < outcomes->size(); ++i)
    list.push_back({{"job", (*outcomes)[i].attempt.job},
                    {"attempt", (*outcomes)[i].attempt.attempt},
                    {"ended", kNames[static_cast<std::size_t>((*ended)[i])]}});
  return json_reply({{"results", std::move(list)}});
}

Result<ApiReply> post_events(ApiState& state, const Call& call) {
  auto device = device_of(call);
  if (!device) return std::move(device.error());
  const auto body = parse_body(call.request);
  if (!body) return tl::unexpected(body.error());
  const auto sent = fleet::parse_events(core::JsonView(*body, "body"));
  if (!sent) return tl::unexpected(sent.error());
  std::vector<store::EventRecord> events;
  for (const auto& event : *sent) {
    const auto time = parse_time(event.time);
    if (!time) return core::within("body: events: time", time.error());
    events.push_back({.agent = *device,
                      .sequence = event.sequence,
                      .job = event.job,
                      .kind = event.kind,
                      .body = event.body,
                      .time = *time});
  }
  if (auto ok = state.tell(events); !ok) return tl::unexpected(ok.error());
  return json_reply({{"received", events.size()}});
}

}  // namespace fleetfit::server
