#include "fleetfit/fleet/messages.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fleet/text_checks.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::fleet {

using core::field;

namespace {

using Json = nlohmann::ordered_json;

constexpr double kLargest = 0x1p53;  // whole numbers that a double holds, for browsers
constexpr std::size_t kMostRunning = 1000;
constexpr std::size_t kMostJobs = 1000;
constexpr std::size_t kMostOutcomes = 1000;
constexpr std::size_t kMostEvents = 10'000;
constexpr std::size_t kMostName = 200;
constexpr std::size_t kMostLine = 4000;
constexpr std::size_t kMostProbe = std::size_t{256} << 10;
constexpr std::size_t kMostServing = std::size_t{64} << 10;
constexpr std::size_t kMostBody = std::size_t{64} << 10;
constexpr std::size_t kMostResult = std::size_t{16} << 20;

Status read_kind(const core::JsonView& view, Assignment& assignment) {
  FLEETFIT_ASSIGN(const auto kind, view.as_text());
  FLEETFIT_ASSIGN(assignment.request, empty_request(kind));
  return {};
}
Json kind_json(const Assignment& assignment) { return kind_of(assignment.request); }

Status read_request(const core::JsonView& view, Assignment& assignment) {
  FLEETFIT_ASSIGN(assignment.request, parse_request(kind_of(assignment.request), view));
  return {};
}
Json request_json(const Assignment& assignment) { return to_json(assignment.request); }

Status read_state(const core::JsonView& view, Outcome& outcome) {
  FLEETFIT_ASSIGN(const auto state, view.as_text());
  outcome.finished = state == "finished";
  if (outcome.finished || state == "failed") return {};
  return view.error("expected one of finished, failed");
}
std::string state_of(const Outcome& outcome) { return outcome.finished ? "finished" : "failed"; }

Status check_reason(const Outcome& outcome) {
  if (outcome.finished || !outcome.reason.empty()) return {};
  return refuse("reason: a job that has failed has one");
}

/// {"jobs":[…]} and the like.
template <class Message>
struct Batch {
  std::vector<Message> all = {};
};

}  // namespace

core::Fields fields_of(const Registration*) {
  static constexpr core::Field kAll[] = {
      field<&Registration::name>("name").checked(check_name),
      field<&Registration::version>("version").at_most(kMostName),
      field<&Registration::hardware>("hardware").at_most(kMostLine).may_be_missing(),
      field<&Registration::probe>("probe").json_object().at_most(kMostProbe).may_be_missing()};
  return {.what = "registration", .all = kAll};
}

core::Fields fields_of(const Attempt*) {
  static constexpr core::Field kAll[] = {field<&Attempt::job>("id").between(1, kLargest),
                                         field<&Attempt::attempt>("attempt").between(1, kLargest)};
  return {.what = "attempt", .all = kAll};
}

core::Fields fields_of(const Heartbeat*) {
  static constexpr core::Field kAll[] = {
      field<&Heartbeat::running>("running").at_most(kMostRunning).may_be_missing(),
      field<&Heartbeat::serving>("serving").json_object().at_most(kMostServing).may_be_missing()};
  return {.what = "heartbeat", .all = kAll};
}

core::Fields fields_of(const HeartbeatReply*) {
  using Reply = HeartbeatReply;
  static constexpr core::Field kAll[] = {
      field<&Reply::cancel>("cancel").between(1, kLargest).at_most(kMostRunning).may_be_missing(),
      field<&Reply::waiting>("waiting").between(0, kLargest).may_be_missing(),
      field<&Reply::lease_s>("lease_s").above(0).up_to(kLongestS).may_be_missing()};
  return {.what = "reply", .all = kAll};
}

core::Fields fields_of(const JobLimits*) {
  using Limits = JobLimits;
  static constexpr core::Field kAll[] = {
      field<&Limits::seconds>("seconds").above(0).up_to(kLongestS).may_be_missing(),
      field<&Limits::memory_bytes>("memory_bytes").between(0, kLargest).may_be_missing()};
  return {.what = "limits", .all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const Assignment*) {
  static constexpr core::Field kAll[] = {
      field<&Assignment::attempt>("attempt").inlined(),
      core::field_by<Assignment, read_kind, kind_json>("kind"),
      core::field_by<Assignment, read_request, request_json>("request"),
      field<&Assignment::lease_s>("lease_s").above(0).up_to(kLongestS).may_be_missing(),
      field<&Assignment::limits>("limits").may_be_missing()};
  return {.what = "job", .all = kAll};
}

core::Fields fields_of(const Outcome*) {
  static constexpr core::Field kAll[] = {
      field<&Outcome::attempt, &Attempt::job>("job").between(1, kLargest),
      field<&Outcome::attempt, &Attempt::attempt>("attempt").between(1, kLargest),
      core::field_by<Outcome, read_state, state_of>("state"),
      field<&Outcome::reason>("reason").at_most(kMostLine).may_be_missing(),
      field<&Outcome::result>("result").json_object().at_most(kMostResult).may_be_missing()};
  return {.what = "result", .all = kAll, .rule = core::rule_by<Outcome, check_reason>};
}

core::Fields fields_of(const Event*) {
  static constexpr core::Field kAll[] = {
      field<&Event::sequence>("sequence").between(1, kLargest),
      field<&Event::time>("time").checked(check_time),
      field<&Event::kind>("kind").checked(check_word),
      field<&Event::job>("job").between(1, kLargest).omit_default(),
      field<&Event::body>("body").json_object().at_most(kMostBody).may_be_missing()};
  return {.what = "event", .all = kAll};
}

namespace {

core::Fields fields_of(const Batch<Assignment>*) {
  static constexpr core::Field kAll[] = {field<&Batch<Assignment>::all>("jobs").at_most(kMostJobs)};
  return {.what = "jobs", .all = kAll};
}

core::Fields fields_of(const Batch<Outcome>*) {
  static constexpr core::Field kAll[] = {
      field<&Batch<Outcome>::all>("results").at_most(kMostOutcomes)};
  return {.what = "results", .all = kAll};
}

core::Fields fields_of(const Batch<Event>*) {
  static constexpr core::Field kAll[] = {field<&Batch<Event>::all>("events").at_most(kMostEvents)};
  return {.what = "events", .all = kAll};
}

template <class Message>
Result<std::vector<Message>> read_all(const core::JsonView& message) {
  return core::read<Batch<Message>>(message).map(
      [](Batch<Message> batch) { return std::move(batch.all); });
}

}  // namespace

Result<Registration> parse_registration(const core::JsonView& message) {
  return core::read<Registration>(message);
}

Result<Heartbeat> parse_heartbeat(const core::JsonView& message) {
  return core::read<Heartbeat>(message);
}

Result<HeartbeatReply> parse_heartbeat_reply(const core::JsonView& message) {
  return core::read<HeartbeatReply>(message);
}

Result<JobLimits> parse_limits(const core::JsonView& limits) {
  return core::read<JobLimits>(limits);
}

Result<std::vector<Assignment>> parse_assignments(const core::JsonView& message) {
  return read_all<Assignment>(message);
}

Result<std::vector<Outcome>> parse_outcomes(const core::JsonView& message) {
  return read_all<Outcome>(message);
}

Result<std::vector<Event>> parse_events(const core::JsonView& message) {
  return read_all<Event>(message);
}

Json to_json(const Registration& registration) { return core::to_json(registration); }
Json to_json(const Heartbeat& heartbeat) { return core::to_json(heartbeat); }
Json to_json(const HeartbeatReply& reply) { return core::to_json(reply); }
Json to_json(const JobLimits& limits) { return core::to_json(limits); }

Json to_json(const std::vector<Assignment>& jobs) { return core::to_json(Batch<Assignment>{jobs}); }
Json to_json(const std::vector<Outcome>& outcomes) {
  return core::to_json(Batch<Outcome>{outcomes});
}
Json to_json(const std::vector<Event>& events) { return core::to_json(Batch<Event>{events}); }

}  // namespace fleetfit::fleet
