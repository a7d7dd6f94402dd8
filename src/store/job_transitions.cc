#include "store/job_transitions.h"

#include <fmt/format.h>

namespace fleetfit::store {
namespace {

void leave(JobRecord& job, JobState state, std::string_view reason) {
  job.state = state;
  job.reason = reason;
  job.lease.reset();
  job.cancel_requested = false;
}

void end_as(JobRecord& job, JobState state, std::string_view reason, Time now) {
  leave(job, state, reason);
  job.ended = now;
}

void end_cancelled(JobRecord& job, Time now) {
  end_as(job, JobState::cancelled, "somebody asked for it to be cancelled", now);
}

// Nobody has claimed it since that attempt.
bool is_held(const JobRecord& job, std::string_view agent, std::int64_t attempt) {
  return job.agent == agent && job.attempt == attempt && attempt > 0 && !has_ended(job.state);
}

}  // namespace

JobRecord new_job(const JobRecord& wanted, std::int64_t id) {
  return {.id = id,
          .agent = wanted.agent,
          .kind = wanted.kind,
          .request = wanted.request,
          .limits = wanted.limits,
          .key = wanted.key,
          .most_attempts = wanted.most_attempts,
          .created = wanted.created};
}

bool has_ended(JobState state) { return state != JobState::waiting && state != JobState::running; }

void claim(JobRecord& job, Time now, Time until) {
  job.state = JobState::running;
  job.reason.clear();
  ++job.attempt;
  job.lease = until;
  job.started = now;
}

Heard hear_of(JobRecord& job, std::string_view agent, const FleetStore::Running& running, Time now,
              Time until) {
  if (!is_held(job, agent, running.attempt)) return Heard::stops;
  if (job.cancel_requested) {
    end_cancelled(job, now);
    return Heard::stops;
  }
  job.state = JobState::running;
  job.reason.clear();
  job.lease = until;
  return Heard::goes_on;
}

Ended end(JobRecord& job, std::string_view agent, const JobEnd& end, Time now) {
  if (is_held(job, agent, end.attempt)) {
    end_as(job, end.state, end.reason, now);
    job.result = end.result;
    return Ended::now;
  }
  const bool is_same = job.agent == agent && job.attempt == end.attempt && job.state == end.state &&
                       job.reason == end.reason;
  return is_same ? Ended::already : Ended::lost;
}

bool cancel(JobRecord& job, Time now) {
  if (has_ended(job.state)) return false;
  if (job.state == JobState::waiting) {
    end_cancelled(job, now);
  } else {
    job.cancel_requested = true;
  }
  return true;
}

void take_back(JobRecord& job, Time now) {
  if (job.cancel_requested) return end_cancelled(job, now);
  if (job.attempt >= job.most_attempts)
    return end_as(job, JobState::failed,
                  fmt::format("nothing was heard of its agent until the lease of attempt {} ended",
                              job.attempt),
                  now);
  leave(job, JobState::waiting,
        fmt::format("nothing was heard of its agent until the lease of attempt {} ended; it is "
                    "tried again",
                    job.attempt));
}

std::int64_t& count_of(JobCounts& counts, JobState state) {
  static constexpr std::int64_t JobCounts::* kInOrder[] = {&JobCounts::waiting, &JobCounts::running,
                                                           &JobCounts::finished, &JobCounts::failed,
                                                           &JobCounts::cancelled};
  return counts.*kInOrder[static_cast<std::size_t>(state)];
}

std::string searchable_text(const AgentRecord& agent) {
  return searchable_text(agent.name + "\n" + agent.hardware);
}

std::string searchable_text(std::string_view query) {
  std::string text(query);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

tl::unexpected<Error> no_agent(std::string_view name) {
  return fail(ErrorCode::not_found, fmt::format("there is no agent '{}'", name));
}

tl::unexpected<Error> token_exists(std::string_view name) {
  return fail(ErrorCode::invalid_input,
              fmt::format("token '{}': there is one of the same hash already", name));
}

}  // namespace fleetfit::store
