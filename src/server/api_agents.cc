#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <variant>

#include "fleetfit/app/measuring.h"
#include "fleetfit/app/tokens.h"
#include "fleetfit/fleet/messages.h"
#include "server/api_json.h"
#include "server/api_state.h"

namespace fleetfit::server {
namespace {

constexpr double kHeartbeatS = 10;

Status tell_if_it_came(ApiState& state, const std::string& device, store::Time now) {
  if (!state.presence().seen(device, now)) return {};
  return state.tell(device_event(device, "online", now));
}

/// Why a device that nobody knew may not register now; nothing if it may.
Result<std::optional<ApiReply>> refuse_new_device(ApiState& state, const Call& call) {
  const auto& token = call.caller.token;
  if (const auto most = app::most_devices(token)) {
    FLEETFIT_ASSIGN(const auto count, state.fleet().count_agents_of(token.id));
    if (count >= *most)
      return refusal(403, "forbidden",
                     fmt::format("the token may register {} new devices, and has; 'token create "
                                 "--role agent --devices N' makes one for more",
                                 *most));
  }
  const auto now = state.workplace().clock.now();
  const auto& limit = state.options().of_new_devices;
  auto wait = state.address_limiter().take("new " + network_of(call.request.peer), limit, now);
  if (!wait) wait = state.limiter().take(fmt::format("new {}", token.id), limit, now);
  if (wait) return too_many(*wait);
  return std::nullopt;
}

/// Keeps the device; what it serves is in its heartbeats. A reply says why it is not kept.
Result<std::optional<ApiReply>> keep_agent(ApiState& state, const Call& call,
                                           const fleet::Registration& registration) {
  const std::lock_guard one_at_a_time(state.registration_mutex());
  FLEETFIT_ASSIGN(const auto known, state.fleet().find_agent(registration.name));
  if (!known) {
    FLEETFIT_ASSIGN(auto refused, refuse_new_device(state, call));
    if (refused) return refused;
  }
  const store::AgentRecord agent{.name = registration.name,
                                 .version = registration.version,
                                 .hardware = registration.hardware,
                                 .probe = registration.probe,
                                 .serving = known ? known->serving : "{}",
                                 .created = call.now,
                                 .last_seen = call.now,
                                 .token = call.caller.token.id};
  FLEETFIT_TRY(state.fleet().save_agents({&agent, 1}));
  return std::nullopt;
}

/// Whether jobs are those of a device; each is looked up once.
class OwnJobs {
 public:
  /// Both are borrowed.
  OwnJobs(ApiState& state, const std::string& device) : state_(state), device_(device) {}

  Result<bool> has(std::int64_t id) {
    const auto [at, is_new] = known_.try_emplace(id, false);
    if (!is_new) return at->second;
    FLEETFIT_ASSIGN(const auto job, state_.fleet().find_job(id));
    at->second = job && job->agent == device_;
    return at->second;
  }

 private:
  ApiState& state_;
  const std::string& device_;
  std::map<std::int64_t, bool> known_ = {};
};

/// Kinds of events that say what the server itself has seen.
bool is_of_the_server(std::string_view kind) {
  return kind == "job" || kind == "device" || kind == "measurement";
}

/// An event as it is kept; nothing if a device has no business to send it.
Result<std::optional<store::EventRecord>> event_of(const fleet::Event& sent,
                                                   const std::string& device, OwnJobs& jobs,
                                                   store::Time now) {
  FLEETFIT_ASSIGN(const auto device_time,
                  core::within("body: events: time", parse_time(sent.time)));
  if (is_of_the_server(sent.kind)) return std::nullopt;
  if (sent.job) {
    FLEETFIT_ASSIGN(const auto own, jobs.has(*sent.job));
    if (!own) return std::nullopt;
  }
  return store::EventRecord{.agent = device,
                            .sequence = sent.sequence,
                            .job = sent.job,
                            .kind = sent.kind,
                            .body = sent.body,
                            .time = now,
                            .device_time = device_time};
}

Json assignment_json(const store::JobRecord& job, double lease_s) {
  return {{"id", job.id},       {"attempt", job.attempt},
          {"kind", job.kind},   {"request", embedded(job.request)},
          {"lease_s", lease_s}, {"limits", embedded(job.limits)}};
}

/// How one attempt has ended, and what it has measured.
struct Finding {
  std::optional<store::JobRecord> job = std::nullopt;
  store::JobEnd end = {};
  std::optional<store::MeasurementRecord> measurement = std::nullopt;
};

bool is_text(std::string_view text) { return text.find('\0') == std::string_view::npos; }

tl::unexpected<Error> senseless(std::string_view field, std::string_view why) {
  return fail(ErrorCode::invalid_input, fmt::format("result: {}: {}", field, why));
}

Status check_latency(const store::Latency& latency) {
  if (!(latency.median_ms > 0)) return senseless("latency_ms", "a run that takes no time is none");
  if (!(latency.mean_ms > 0) || !(latency.p90_ms >= 0) || !(latency.p99_ms >= 0))
    return senseless("latency_ms", "is below zero");
  if (!(latency.ci95_ms.low >= 0) || latency.ci95_ms.low > latency.ci95_ms.high)
    return senseless("latency_ms.ci95", "expected the lower end first");
  return {};
}

/// Fails with `invalid_input`, naming the field, if it makes no sense.
Status check_measurement(const store::MeasurementRecord& record) {
  if (record.latency)
    if (auto ok = check_latency(*record.latency); !ok) return ok;
  if (!record.latency && record.status == store::MeasurementStatus::ok)
    return senseless("latency_ms", "is missing though the status is ok");
  if (record.status != store::MeasurementStatus::ok && record.reason.empty())
    return senseless("reason", "one is needed, as the status is not ok");
  if (record.runs < 0) return senseless("runs", "is below zero");
  if (record.overhead_ms && !(*record.overhead_ms >= 0))
    return senseless("overhead_ms", "is below zero");
  if (record.energy && !(record.energy->mj >= 0)) return senseless("energy_mj", "is below zero");
  bool texts = is_text(record.reason) && is_text(record.device_fingerprint);
  for (const auto& op : record.operators) {
    if (!(op.ms >= 0)) return senseless("ops", "an operator takes less than no time");
    texts = texts && is_text(op.name) && is_text(op.type) && is_text(op.kernel);
  }
  if (!texts) return senseless("text", "contains a NUL character");
  return {};
}

/// The measurement of a finished job as it is to be kept.
Result<store::MeasurementRecord> measurement_of(const store::JobRecord& job,
                                                const std::string& result, store::Time now) {
  FLEETFIT_ASSIGN(const auto request_json, core::parse_json(job.request, "request"));
  FLEETFIT_ASSIGN(const auto request,
                  fleet::parse_request(job.kind, core::JsonView(request_json, "request")));
  const auto& asked = std::get<fleet::MeasureJob>(request);
  FLEETFIT_ASSIGN(const auto json, core::parse_json(result, "result"));
  auto record = app::read_measured(core::JsonView(json, "result"));
  if (!record) return record;
  FLEETFIT_TRY(check_measurement(*record));
  if (record->model_hash != asked.model)
    return fail(ErrorCode::invalid_input,
                "result: hash: is not that of the model that was asked "
                "for");
  record->device = asked.as.empty() ? job.agent : job.agent + "." + asked.as;
  record->model_name = std::filesystem::path(asked.name).stem().string();
  if (!asked.space.empty()) record->space = asked.space;
  if (!asked.design.empty()) record->design = asked.design;
  auto conditions = embedded(record->conditions);
  conditions["job"] = job.id;
  // Lists are sorted by our clock; that of a device may say anything.
  if (record->started != store::Time{}) conditions["device_time"] = time_text(record->started);
  record->started = job.started.value_or(now);
  record->conditions = conditions.dump();
  return record;
}

Result<Finding> finding_of(ApiState& state, const fleet::Outcome& outcome, store::Time now) {
  Finding finding;
  finding.end = {.job = outcome.attempt.job,
                 .attempt = outcome.attempt.attempt,
                 .state = outcome.finished ? store::JobState::finished : store::JobState::failed,
                 .reason = outcome.reason,
                 .result = outcome.result};
  FLEETFIT_ASSIGN(finding.job, state.fleet().find_job(outcome.attempt.job));
  if (!outcome.finished || !finding.job || finding.job->kind != "measure") return finding;
  auto measurement = measurement_of(*finding.job, outcome.result, now);
  if (measurement) {
    finding.measurement = *std::move(measurement);
  } else {
    finding.end.state = store::JobState::failed;
    finding.end.reason = measurement.error().message;
  }
  return finding;
}

/// Whether a measurement of that job is kept already.
Result<bool> is_kept(ApiState& state, const store::MeasurementRecord& measurement,
                     std::int64_t job) {
  FLEETFIT_ASSIGN(const auto kept,
                  state.store().list_measurements({.device = measurement.device,
                                                   .model_hash = measurement.model_hash,
                                                   .operators = false}));
  return std::ranges::any_of(kept, [&](const store::MeasurementRecord& record) {
    return embedded(record.conditions).value("job", std::int64_t{0}) == job;
  });
}

Json measurement_body(const store::MeasurementRecord& record, std::int64_t id) {
  return {{"id", id},
          {"model", record.model_hash},
          {"name", record.model_name},
          {"device", record.device},
          {"status", store::to_string(record.status)},
          {"median_ms", record.latency ? Json(record.latency->median_ms) : Json()}};
}

/// Those of jobs that have ended now, and of those that had ended when a server was killed.
Result<std::vector<const Finding*>> missing_measurements(ApiState& state,
                                                         const std::vector<Finding>& findings,
                                                         const std::vector<store::Ended>& ended) {
  std::vector<const Finding*> missing;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (!findings[i].measurement || ended[i] == store::Ended::lost) continue;
    if (ended[i] == store::Ended::already) {
      FLEETFIT_ASSIGN(const auto kept,
                      is_kept(state, *findings[i].measurement, findings[i].end.job));
      if (kept) continue;
    }
    missing.push_back(&findings[i]);
  }
  return missing;
}

Status keep_measurements(ApiState& state, const std::vector<const Finding*>& missing,
                         store::Time now, std::vector<store::EventRecord>& events) {
  std::vector<store::MeasurementRecord> records;
  for (const auto* finding : missing) records.push_back(*finding->measurement);
  if (records.empty()) return {};
  FLEETFIT_ASSIGN(const auto ids, state.store().add_measurements(records));
  for (std::size_t i = 0; i < records.size(); ++i)
    events.push_back({.agent = missing[i]->job->agent,
                      .job = missing[i]->end.job,
                      .kind = "measurement",
                      .body = measurement_body(records[i], ids[i]).dump(),
                      .time = now});
  return {};
}

std::vector<store::EventRecord> events_of(const std::vector<Finding>& findings,
                                          const std::vector<store::Ended>& ended, store::Time now) {
  std::vector<store::EventRecord> events;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (ended[i] != store::Ended::now || !findings[i].job) continue;
    auto job = *findings[i].job;
    job.state = findings[i].end.state;
    job.reason = findings[i].end.reason;
    events.push_back(job_event(job, now));
  }
  return events;
}

/// Keeps what a device has found, in the same order. What `measure` jobs have measured is kept as
/// measurements; a result that makes no sense is a failed job. The same outcome again changes
/// nothing, but makes good what a server that was killed in between has left undone.
Result<std::vector<store::Ended>> keep_results(ApiState& state, const std::string& device,
                                               std::span<const fleet::Outcome> outcomes,
                                               store::Time now) {
  const std::lock_guard one_at_a_time(state.results_mutex());
  std::vector<Finding> findings;
  std::vector<store::JobEnd> ends;
  for (const auto& outcome : outcomes) {
    FLEETFIT_ASSIGN(auto finding, finding_of(state, outcome, now));
    ends.push_back(finding.end);
    findings.push_back(std::move(finding));
  }
  FLEETFIT_ASSIGN(const auto ended, state.fleet().end_jobs(device, ends, now));
  FLEETFIT_ASSIGN(const auto missing, missing_measurements(state, findings, ended));
  auto events = events_of(findings, ended, now);
  FLEETFIT_TRY(keep_measurements(state, missing, now, events));
  FLEETFIT_TRY(state.tell(events));
  return ended;
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
  const auto& name = registration.name;
  FLEETFIT_ASSIGN(auto refused, keep_agent(state, call, registration));
  if (refused) return *std::move(refused);
  FLEETFIT_TRY(tell_if_it_came(state, name, call.now));
  FLEETFIT_TRY(state.note(call, "agent.register", name));
  FLEETFIT_ASSIGN(const auto sequence, state.fleet().last_sequence(name));
  return json_reply({{"name", name},
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
  OwnJobs jobs(state, *device);
  std::vector<store::EventRecord> events;
  for (const auto& one : sent) {
    FLEETFIT_ASSIGN(auto event, event_of(one, *device, jobs, call.now));
    if (event) events.push_back(*std::move(event));
  }
  FLEETFIT_TRY(state.tell(events));
  return json_reply({{"received", events.size()}, {"dropped", sent.size() - events.size()}});
}

}  // namespace fleetfit::server
