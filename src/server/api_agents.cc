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

/// The record that it is to have; what it serves is in its heartbeats.
Result<store::AgentRecord> agent_of(ApiState& state, const fleet::Registration& registration,
                                    store::Time now) {
  FLEETFIT_ASSIGN(const auto known, state.fleet().find_agent(registration.name));
  return store::AgentRecord{.name = registration.name,
                            .version = registration.version,
                            .hardware = registration.hardware,
                            .probe = registration.probe,
                            .serving = known ? known->serving : "{}",
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
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  FLEETFIT_ASSIGN(const auto registration, fleet::parse_registration(core::JsonView(body, "body")));
  const auto& bound = call.caller.token.device;
  const auto asked = call.query.text("device");
  if ((!bound.empty() && bound != registration.name) ||
      (!asked.empty() && asked != registration.name)) {
    return refusal(403, "forbidden", "the token is bound to another device");
  }
  FLEETFIT_ASSIGN(const auto agent, agent_of(state, registration, call.now));
  FLEETFIT_TRY(state.fleet().save_agents({&agent, 1}));
  FLEETFIT_TRY(tell_if_it_came(state, agent.name, call.now));
  FLEETFIT_TRY(state.note(call, "agent.register", agent.name));
  FLEETFIT_ASSIGN(const auto sequence, state.fleet().last_sequence(agent.name));
  return json_reply({{"name", agent.name},
                     {"heartbeat_s", kHeartbeatS},
                     {"lease_s", state.options().lease_s},
                     {"last_sequence", sequence}});
}

Result<ApiReply> post_heartbeat(ApiState& state, const Call& call) {
  auto device = device_of(call);
  if (!device) return std::move(device.error());
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  FLEETFIT_ASSIGN(const auto heartbeat, fleet::parse_heartbeat(core::JsonView(body, "body")));
  std::vector<store::FleetStore::Running> running;
  for (const auto& attempt : heartbeat.running) running.push_back({attempt.job, attempt.attempt});
  const auto lease_s = state.options().lease_s;
  FLEETFIT_ASSIGN(auto cancel, state.fleet().heartbeat(*device, heartbeat.serving, running,
                                                       call.now, state.later(call.now, lease_s)));
  FLEETFIT_TRY(tell_if_it_came(state, *device, call.now));
  FLEETFIT_ASSIGN(const auto counts, state.fleet().count_jobs_of(*device));
  return json_reply(fleet::to_json(fleet::HeartbeatReply{
      .cancel = std::move(cancel), .waiting = counts.waiting, .lease_s = lease_s}));
}

Result<ApiReply> post_claim(ApiState& state, const Call& call) {
  auto device = device_of(call);
  if (!device) return std::move(device.error());
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  constexpr std::int64_t kMost = 100;
  FLEETFIT_ASSIGN(const auto most,
                  core::JsonView(body, "body").integer_or("most", 1, {.min = 1, .max = kMost}));
  const auto lease_s = state.options().lease_s;
  FLEETFIT_ASSIGN(const auto jobs,
                  state.fleet().claim_jobs(*device, call.now, state.later(call.now, lease_s),
                                           static_cast<std::size_t>(most)));
  auto list = Json::array();
  std::vector<store::EventRecord> events;
  for (const auto& job : jobs) {
    list.push_back(assignment_json(job, lease_s));
    events.push_back(job_event(job, call.now));
  }
  FLEETFIT_TRY(state.tell(events));
  return json_reply({{"jobs", std::move(list)}});
}

Result<ApiReply> post_results(ApiState& state, const Call& call) {
  auto device = device_of(call);
  if (!device) return std::move(device.error());
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  FLEETFIT_ASSIGN(const auto outcomes, fleet::parse_outcomes(core::JsonView(body, "body")));
  FLEETFIT_ASSIGN(const auto ended, keep_results(state, *device, outcomes, call.now));
  constexpr std::string_view kNames[] = {"now", "already", "lost"};
  auto list = Json::array();
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    list.push_back({{"job", outcomes[i].attempt.job},
                    {"attempt", outcomes[i].attempt.attempt},
                    {"ended", kNames[static_cast<std::size_t>(ended[i])]}});
  return json_reply({{"results", std::move(list)}});
}

Result<ApiReply> post_events(ApiState& state, const Call& call) {
  auto device = device_of(call);
  if (!device) return std::move(device.error());
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  FLEETFIT_ASSIGN(const auto sent, fleet::parse_events(core::JsonView(body, "body")));
  std::vector<store::EventRecord> events;
  for (const auto& event : sent) {
    const auto time = parse_time(event.time);
    if (!time) return core::within("body: events: time", time.error());
    events.push_back({.agent = *device,
                      .sequence = event.sequence,
                      .job = event.job,
                      .kind = event.kind,
                      .body = event.body,
                      .time = *time});
  }
  FLEETFIT_TRY(state.tell(events));
  return json_reply({{"received", events.size()}});
}

}  // namespace fleetfit::server
