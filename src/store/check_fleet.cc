#include <fmt/format.h>

#include "fleetfit/core/fields.h"
#include "store/check.h"
#include "store/job_transitions.h"

namespace fleetfit::store {
namespace {

constexpr std::size_t kLongestQuery = 1000;

Status check_reason(std::string_view place, JobState state, std::string_view reason) {
  FLEETFIT_TRY(core::check_text(place, {.name = "reason"}, reason));
  if ((state == JobState::failed || state == JobState::cancelled) && reason.empty())
    return refuse(fmt::format("{}: reason is empty though the job is {}", place, to_string(state)));
  return {};
}

/// A date that a job has in some states alone.
Status check_date(std::string_view place, std::string_view name, const std::optional<Time>& date,
                  JobState state, bool is_wanted) {
  if (date.has_value() == is_wanted) return {};
  return refuse(fmt::format("{}: {} is {} though the job is {}", place, name,
                            date ? "there" : "missing", to_string(state)));
}

template <class Records>
Status check_ids(const Records& records, std::string_view what) {
  for (const auto& record : records)
    if (record.id < 1) return refuse(fmt::format("{}: id is {}, below one", what, record.id));
  return {};
}

}  // namespace

Status check(const TokenRecord& token) { return core::check(token); }
Status check(const AgentRecord& agent) { return core::check(agent); }
Status check(const FileRecord& file) { return core::check(file); }
Status check(const AuditRecord& entry) { return core::check(entry); }

Status check_new_job(const JobRecord& job) {
  return core::check(JobRecord{.agent = job.agent,
                               .kind = job.kind,
                               .request = job.request,
                               .limits = job.limits,
                               .key = job.key,
                               .most_attempts = job.most_attempts});
}

Status check(const JobRecord& job) {
  const auto place = fmt::format("job {}", job.id);
  FLEETFIT_TRY(core::check(job, place));
  FLEETFIT_TRY(check_reason(place, job.state, job.reason));
  const bool is_running = job.state == JobState::running;
  FLEETFIT_TRY(check_date(place, "lease", job.lease, job.state, is_running));
  return check_date(place, "ended", job.ended, job.state, has_ended(job.state));
}

Status check(const EventRecord& event) {
  FLEETFIT_TRY(core::check(event));
  if (event.sequence > 0 && event.agent.empty())
    return refuse("event: agent is empty though there is a sequence");
  return {};
}

Status check(const JobEnd& end) {
  const auto place = fmt::format("job {}", end.job);
  if (end.state != JobState::finished && end.state != JobState::failed)
    return refuse(
        fmt::format("{}: state is {}, which an agent cannot say", place, to_string(end.state)));
  FLEETFIT_TRY(check_reason(place, end.state, end.reason));
  return core::check_text(place, core::Field{.name = "result"}.json_object(), end.result);
}

Status check(const AgentFilter& filter) {
  FLEETFIT_TRY(core::check_text("filter", core::Field{.name = "query"}.at_most(kLongestQuery),
                                filter.query));
  return core::check_text("filter", {.name = "after"}, filter.after);
}

Status check(const FleetRecords& records) {
  FLEETFIT_TRY(check_each(records.tokens));
  FLEETFIT_TRY(check_each(records.agents));
  FLEETFIT_TRY(check_each(records.jobs));
  FLEETFIT_TRY(check_each(records.events));
  FLEETFIT_TRY(check_each(records.files));
  FLEETFIT_TRY(check_each(records.audit));
  FLEETFIT_TRY(check_ids(records.tokens, "token"));
  FLEETFIT_TRY(check_ids(records.jobs, "job"));
  FLEETFIT_TRY(check_ids(records.events, "event"));
  return check_ids(records.audit, "audit");
}

Status check_serving(std::string_view serving) {
  return core::check_text("heartbeat", core::Field{.name = "serving"}.json_object(), serving);
}

}  // namespace fleetfit::store
