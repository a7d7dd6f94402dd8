#include "fleetfit/fleet/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleet/field_reader.h"

namespace fleetfit::fleet {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargest = std::int64_t{1} << 53;  // what a double holds, for browsers
constexpr double kLongestS = 7 * 24 * 3600.0;
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
constexpr std::array<std::string_view, 2> kStates = {"finished", "failed"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// "2026-11-16T08:00:00Z", with a fraction of a second or without.
Status check_time(std::string_view time) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  bool good =
      time.size() > kShape.size() && time.size() <= kShape.size() + 11 && time.back() == 'Z';
  for (std::size_t i = 0; good && i < kShape.size(); ++i)
    good = kShape[i] == '0' ? is_digit(time[i]) : time[i] == kShape[i];
  if (good) {
    const auto fraction = time.substr(kShape.size(), time.size() - kShape.size() - 1);
    good = fraction.empty() || (fraction.size() > 1 && fraction.front() == '.' &&
                                std::ranges::all_of(fraction.substr(1), is_digit));
  }
  if (good) return {};
  return fail(ErrorCode::invalid_input, "expected a time such as 2026-11-16T08:00:00.000Z");
}

/// What an event or a job is called: "switch", "job.finished".
Status check_word(std::string_view word) {
  constexpr std::size_t kMost = 40;
  const bool good = !word.empty() && word.size() <= kMost && std::ranges::all_of(word, [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-';
  });
  if (good) return {};
  return fail(ErrorCode::invalid_input, "expected a word of at most 40 letters and digits");
}

/// The JSON in a text that a message carries as it is.
Json embedded(const std::string& text) {
  auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

FieldReader& read_attempt(FieldReader& reader, std::string_view job_key, Attempt& attempt) {
  return reader.integer(job_key, attempt.job, {.min = 1, .max = kLargest})
      .integer("attempt", attempt.attempt, {.min = 1, .max = kLargest});
}

Result<Attempt> parse_running(const core::JsonView& view) {
  Attempt attempt;
  FieldReader reader(view);
  read_attempt(reader, "id", attempt);
  return reader.give(attempt);
}

Result<Assignment> parse_assignment(const core::JsonView& view) {
  Assignment assignment;
  std::string kind;
  FieldReader reader(view);
  read_attempt(reader, "id", assignment.attempt)
      .checked("kind", kind, check_word)
      .number("lease_s?", assignment.lease_s, {.max = kLongestS});
  if (const auto request = reader.find("request")) {
    auto read = parse_request(kind, *request);
    if (read)
      assignment.request = *std::move(read);
    else
      reader.refuse(read.error());
  }
  if (const auto limits = reader.find("limits?")) {
    const auto read = parse_limits(*limits);
    if (read)
      assignment.limits = *read;
    else
      reader.refuse(read.error());
  }
  return reader.give(assignment);
}

Result<Outcome> parse_outcome(const core::JsonView& view) {
  Outcome outcome;
  std::string state;
  FieldReader reader(view);
  read_attempt(reader, "job", outcome.attempt)
      .word("state", state, kStates)
      .text("reason?", outcome.reason, kMostLine)
      .object("result?", outcome.result, kMostResult);
  outcome.finished = state == kStates[0];
  if (!reader.failed() && !outcome.finished && outcome.reason.empty())
    reader.refuse(view.error("reason: a job that has failed has one").value());
  return reader.give(outcome);
}

Result<Event> parse_event(const core::JsonView& view) {
  Event event;
  std::int64_t job = 0;
  FieldReader reader(view);
  reader.integer("sequence", event.sequence, {.min = 1, .max = kLargest})
      .checked("time", event.time, check_time)
      .checked("kind", event.kind, check_word)
      .integer("job?", job, {.min = 1, .max = kLargest})
      .object("body?", event.body, kMostBody);
  if (job > 0) event.job = job;
  return reader.give(event);
}

Result<std::int64_t> parse_id(const core::JsonView& view) {
  return view.as_integer({.min = 1, .max = kLargest});
}

}  // namespace

Status check_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  const bool good = !name.empty() && name.size() <= kMost &&
                    (is_letter(name.front()) || is_digit(name.front())) &&
                    std::ranges::all_of(name, [](char c) {
                      return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-';
                    });
  if (good) return {};
  return fail(ErrorCode::invalid_input,
              "expected a name of 1 to 100 letters, digits, '.', '_' and '-' that starts with a "
              "letter or digit");
}

Status check_hash(std::string_view hash) {
  constexpr std::size_t kDigits = 64;
  const bool good = hash.size() == kDigits && std::ranges::all_of(hash, [](char c) {
                      return is_digit(c) || (c >= 'a' && c <= 'f');
                    });
  if (good) return {};
  return fail(ErrorCode::invalid_input, "expected a SHA-256 of 64 digits from 0 to f");
}

Result<Registration> parse_registration(const core::JsonView& message) {
  Registration registration;
  FieldReader reader(message);
  reader.checked("name", registration.name, check_name)
      .text("version", registration.version, kMostName)
      .text("hardware?", registration.hardware, kMostLine)
      .object("probe?", registration.probe, kMostProbe);
  return reader.give(registration);
}

Result<Heartbeat> parse_heartbeat(const core::JsonView& message) {
  Heartbeat heartbeat;
  FieldReader reader(message);
  reader.list("running?", heartbeat.running, kMostRunning, parse_running)
      .object("serving?", heartbeat.serving, kMostServing);
  return reader.give(heartbeat);
}

Result<HeartbeatReply> parse_heartbeat_reply(const core::JsonView& message) {
  HeartbeatReply reply;
  FieldReader reader(message);
  reader.list("cancel?", reply.cancel, kMostRunning, parse_id)
      .integer("waiting?", reply.waiting, {.min = 0, .max = kLargest})
      .number("lease_s?", reply.lease_s, {.max = kLongestS});
  return reader.give(reply);
}

Result<JobLimits> parse_limits(const core::JsonView& limits) {
  JobLimits read;
  FieldReader reader(limits);
  reader.number("seconds?", read.seconds, {.max = kLongestS})
      .integer("memory_bytes?", read.memory_bytes, {.min = 0, .max = kLargest});
  if (auto ok = limits.allow_only({"seconds", "memory_bytes"}); !ok) reader.refuse(ok.error());
  return reader.give(read);
}

Result<std::vector<Assignment>> parse_assignments(const core::JsonView& message) {
  std::vector<Assignment> jobs;
  FieldReader reader(message);
  reader.list("jobs", jobs, kMostJobs, parse_assignment);
  return reader.give(std::move(jobs));
}

Result<std::vector<Outcome>> parse_outcomes(const core::JsonView& message) {
  std::vector<Outcome> outcomes;
  FieldReader reader(message);
  reader.list("results", outcomes, kMostOutcomes, parse_outcome);
  return reader.give(std::move(outcomes));
}

Result<std::vector<Event>> parse_events(const core::JsonView& message) {
  std::vector<Event> events;
  FieldReader reader(message);
  reader.list("events", events, kMostEvents, parse_event);
  return reader.give(std::move(events));
}

Json to_json(const Registration& registration) {
  return {{"name", registration.name},
          {"version", registration.version},
          {"hardware", registration.hardware},
          {"probe", embedded(registration.probe)}};
}

Json to_json(const Heartbeat& heartbeat) {
  auto running = Json::array();
  for (const auto& attempt : heartbeat.running)
    running.push_back({{"id", attempt.job}, {"attempt", attempt.attempt}});
  return {{"running", std::move(running)}, {"serving", embedded(heartbeat.serving)}};
}

Json to_json(const HeartbeatReply& reply) {
  return {{"cancel", reply.cancel}, {"waiting", reply.waiting}, {"lease_s", reply.lease_s}};
}

Json to_json(const JobLimits& limits) {
  return {{"seconds", limits.seconds}, {"memory_bytes", limits.memory_bytes}};
}

Json to_json(const std::vector<Assignment>& assignments) {
  auto jobs = Json::array();
  for (const auto& job : assignments) {
    jobs.push_back({{"id", job.attempt.job},
                    {"attempt", job.attempt.attempt},
                    {"kind", kind_of(job.request)},
                    {"request", to_json(job.request)},
                    {"lease_s", job.lease_s},
                    {"limits", to_json(job.limits)}});
  }
  return {{"jobs", std::move(jobs)}};
}

Json to_json(const std::vector<Outcome>& outcomes) {
  auto results = Json::array();
  for (const auto& outcome : outcomes) {
    results.push_back({{"job", outcome.attempt.job},
                       {"attempt", outcome.attempt.attempt},
                       {"state", kStates[outcome.finished ? 0 : 1]},
                       {"reason", outcome.reason},
                       {"result", embedded(outcome.result)}});
  }
  return {{"results", std::move(results)}};
}

Json to_json(const std::vector<Event>& events) {
  auto list = Json::array();
  for (const auto& event : events) {
    Json json = {{"sequence", event.sequence}, {"time", event.time}, {"kind", event.kind}};
    if (event.job) json["job"] = *event.job;
    json["body"] = embedded(event.body);
    list.push_back(std::move(json));
  }
  return {{"events", std::move(list)}};
}

}  // namespace fleetfit::fleet
