#include <fmt/format.h>

#include "store/check.h"
#include "store/field_check.h"
#include "store/job_transitions.h"

namespace fleetfit::store {
namespace {

constexpr std::size_t kLongestQuery = 1000;

void check_reason(FieldCheck& fields, JobState state, std::string_view reason) {
  fields.text("reason", reason);
  if ((state == JobState::failed || state == JobState::cancelled) && reason.empty())
    fields.refuse("reason", fmt::format("is empty though the job is {}", to_string(state)));
}

void check_wanted(FieldCheck& fields, const JobRecord& job) {
  fields.key("agent", job.agent);
  fields.key("kind", job.kind);
  fields.json("request", job.request);
  fields.json("limits", job.limits);
  fields.text("key", job.key);
  if (job.most_attempts < 1)
    fields.refuse("most_attempts", fmt::format("is {}, below one", job.most_attempts));
}

template <class Records>
Status check_ids(const Records& records, std::string_view what) {
  for (const auto& record : records)
    if (record.id < 1)
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: id is {}, below one", what, record.id));
  return {};
}

}  // namespace

Status check(const TokenRecord& token) {
  FieldCheck fields("token");
  fields.text("name", token.name);
  fields.hash("hash", token.hash);
  fields.text("device", token.device);
  return fields.result();
}

Status check(const AgentRecord& agent) {
  FieldCheck fields("agent");
  fields.key("name", agent.name);
  fields.text("version", agent.version);
  fields.text("hardware", agent.hardware);
  fields.json("probe", agent.probe);
  fields.json("serving", agent.serving);
  return fields.result();
}

Status check_new_job(const JobRecord& job) {
  FieldCheck fields("job");
  check_wanted(fields, job);
  return fields.result();
}

Status check(const JobRecord& job) {
  FieldCheck fields(fmt::format("job {}", job.id));
  check_wanted(fields, job);
  check_reason(fields, job.state, job.reason);
  fields.count("attempt", job.attempt);
  if (job.lease.has_value() != (job.state == JobState::running))
    fields.refuse("lease", fmt::format("is {} though the job is {}",
                                       job.lease ? "there" : "missing", to_string(job.state)));
  if (job.ended.has_value() != has_ended(job.state))
    fields.refuse("ended", fmt::format("is {} though the job is {}",
                                       job.ended ? "there" : "missing", to_string(job.state)));
  fields.json("result", job.result);
  return fields.result();
}

Status check(const EventRecord& event) {
  FieldCheck fields("event");
  fields.text("agent", event.agent);
  fields.count("sequence", event.sequence);
  if (event.sequence > 0 && event.agent.empty())
    fields.refuse("agent", "is empty though there is a sequence");
  fields.key("kind", event.kind);
  fields.json("body", event.body);
  return fields.result();
}

Status check(const FileRecord& file) {
  FieldCheck fields("file");
  fields.hash("hash", file.hash);
  fields.text("name", file.name);
  fields.key("kind", file.kind);
  fields.count("bytes", file.bytes);
  return fields.result();
}

Status check(const AuditRecord& entry) {
  FieldCheck fields("audit");
  fields.count("token", entry.token);
  fields.text("name", entry.name);
  fields.key("action", entry.action);
  fields.text("detail", entry.detail);
  return fields.result();
}

Status check(const JobEnd& end) {
  FieldCheck fields(fmt::format("job {}", end.job));
  if (end.state != JobState::finished && end.state != JobState::failed)
    fields.refuse("state", fmt::format("is {}, which an agent cannot say", to_string(end.state)));
  check_reason(fields, end.state, end.reason);
  fields.json("result", end.result);
  return fields.result();
}

Status check(const AgentFilter& filter) {
  FieldCheck fields("filter");
  fields.text("query", filter.query);
  if (filter.query.size() > kLongestQuery)
    fields.refuse("query", fmt::format("is longer than {} octets", kLongestQuery));
  fields.text("after", filter.after);
  return fields.result();
}

Status check(const FleetRecords& records) {
  const Status checks[] = {check_each(records.tokens),         check_each(records.agents),
                           check_each(records.jobs),           check_each(records.events),
                           check_each(records.files),          check_each(records.audit),
                           check_ids(records.tokens, "token"), check_ids(records.jobs, "job"),
                           check_ids(records.events, "event"), check_ids(records.audit, "audit")};
  for (const auto& checked : checks)
    if (!checked) return checked;
  return {};
}

Status check_serving(std::string_view serving) {
  FieldCheck fields("heartbeat");
  fields.json("serving", serving);
  return fields.result();
}

}  // namespace fleetfit::store
