#include "fleetfit/fleet/messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/fields.h"

namespace fleetfit::fleet {
namespace {

using core::field;
using core::OtherKeys;
using Json = nlohmann::ordered_json;

constexpr double kLongestS = 7 * 24 * 3600.0;
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
constexpr std::size_t kMostText = 4096;
constexpr double kLongestMs = 1e7;
constexpr double kMostThreads = 1024;
constexpr std::array<std::string_view, 6> kKinds = {"probe", "measure", "profile",
                                                    "adapt", "run",     "deploy"};
constexpr std::array<std::string_view, 2> kPrecisions = {"fp32", "int8"};
constexpr std::array<std::string_view, 5> kStrategies = {"guided", "evolution", "annealing",
                                                         "nearby-evolution", "nearby-annealing"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_of_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-'; }

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
  return refuse("expected a time such as 2026-11-16T08:00:00.000Z");
}

/// What an event or a job is called: "switch", "job.finished".
Status check_word(std::string_view word) {
  constexpr std::size_t kMost = 40;
  if (!word.empty() && word.size() <= kMost && std::ranges::all_of(word, is_of_word)) return {};
  return refuse("expected a word of at most 40 letters and digits");
}

/// What names a file and nothing else, whatever folder it is put into.
Status check_file_name(std::string_view name) {
  constexpr std::size_t kMost = 200;
  const bool good =
      !name.empty() && name.size() <= kMost && !name.starts_with('.') &&
      std::ranges::none_of(name, [](unsigned char c) { return c == '/' || c == '\\' || c < ' '; });
  if (good) return {};
  return refuse("expected the name of a file, without folders");
}

template <class Job>
Result<JobRequest> read_job(const core::JsonView& view) {
  return core::read<Job>(view).map([](Job job) { return JobRequest(std::move(job)); });
}

template <class... Jobs>
constexpr auto readers_of(const std::variant<Jobs...>*) {
  return std::array{read_job<Jobs>...};
}

template <class... Jobs>
std::vector<JobRequest> empty_ones(const std::variant<Jobs...>*) {
  return {JobRequest(Jobs{})...};
}

Result<std::size_t> index_of(std::string_view kind) {
  const auto found = std::ranges::find(kKinds, kind);
  if (found != kKinds.end()) return static_cast<std::size_t>(found - kKinds.begin());
  return refuse(fmt::format("kind: there is no job \"{}\", only {} and {}", kind.substr(0, 40),
                            fmt::join(kKinds.begin(), kKinds.end() - 1, ", "), kKinds.back()));
}

struct FileLister {
  using Files = std::vector<std::string>;
  Files operator()(const ProbeJob&) const { return {}; }
  Files operator()(const MeasureJob& job) const { return {job.model}; }
  Files operator()(const ProfileJob& job) const { return {job.bundle}; }
  Files operator()(const AdaptJob& job) const { return {job.bundle}; }
  Files operator()(const RunJob& job) const { return with_pool(job.bundle, job.pool); }
  Files operator()(const DeployJob& job) const { return with_pool(job.bundle, job.pool); }

  static Files with_pool(const std::string& bundle, const std::string& pool) {
    return pool.empty() ? Files{bundle} : Files{bundle, pool};
  }
};

/// A request of that kind as it is by default; also names a kind that there is not.
Result<JobRequest> empty_request(std::string_view kind) {
  static_assert(kKinds.size() == std::variant_size_v<JobRequest>);
  FLEETFIT_ASSIGN(const auto index, index_of(kind));
  return empty_ones(static_cast<const JobRequest*>(nullptr))[index];
}

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
Status check_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  const bool good = !name.empty() && name.size() <= kMost &&
                    (is_letter(name.front()) || is_digit(name.front())) &&
                    std::ranges::all_of(name, is_of_word);
  if (good) return {};
  return refuse(
      "expected a name of 1 to 100 letters, digits, '.', '_' and '-' that starts with a letter or "
      "digit");
}

Status check_hash(std::string_view hash) {
  constexpr std::size_t kDigits = 64;
  const bool good = hash.size() == kDigits && std::ranges::all_of(hash, [](char c) {
                      return is_digit(c) || (c >= 'a' && c <= 'f');
                    });
  if (good) return {};
  return refuse("expected a SHA-256 of 64 digits from 0 to f");
}

core::Fields fields_of(const Settings*) {
  static constexpr core::Field kAll[] = {
      field<&Settings::runtime>("runtime").at_most(kMostText).may_be_missing(),
      field<&Settings::threads>("threads").between(1, kMostThreads).may_be_missing(),
      field<&Settings::cores>("cores").at_most(kMostText).may_be_missing().omit_default(),
      field<&Settings::precision>("precision").one_of(kPrecisions).may_be_missing(),
      field<&Settings::cpu_quota_percent>("cpu_quota_percent")
          .between(1, 100 * kMostThreads)
          .omit_default(),
      field<&Settings::memory_limit>("memory_limit").at_most(40).may_be_missing().omit_default()};
  return {.what = "settings", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const ProbeJob*) {
  static constexpr core::Field kAll[] = {
      field<&ProbeJob::seconds>("seconds").above(0).up_to(600).may_be_missing()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const MeasureJob*) {
  using Job = MeasureJob;
  static constexpr core::Field kAll[] = {
      field<&Job::model>("model").checked(check_hash),
      field<&Job::name>("name").checked(check_file_name),
      field<&Job::settings>("settings").may_be_missing(),
      field<&Job::as>("as").checked(check_name).may_be_missing().omit_default(),
      field<&Job::space>("space").at_most(kMostText).may_be_missing().omit_default(),
      field<&Job::design>("design").at_most(kMostText).may_be_missing().omit_default(),
      field<&Job::operators>("ops").may_be_missing(),
      field<&Job::max_time_s>("max_time_s").above(0).up_to(3600).may_be_missing(),
      field<&Job::target_ci_percent>("target_ci").above(0).up_to(100).may_be_missing()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const ProfileJob*) {
  static constexpr core::Field kAll[] = {
      field<&ProfileJob::bundle>("bundle").checked(check_hash),
      field<&ProfileJob::threads>("threads").between(1, kMostThreads).may_be_missing()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const AdaptJob*) {
  static constexpr core::Field kAll[] = {
      field<&AdaptJob::bundle>("bundle").checked(check_hash),
      field<&AdaptJob::data>("data").at_most(kMostText),
      field<&AdaptJob::budget_ms>("budget_ms").above(0).up_to(kLongestMs),
      field<&AdaptJob::strategy>("strategy").one_of(kStrategies).may_be_missing()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const RunJob*) {
  static constexpr core::Field kAll[] = {
      field<&RunJob::bundle>("bundle").checked(check_hash),
      field<&RunJob::budget_ms>("budget_ms").above(0).up_to(kLongestMs),
      field<&RunJob::data>("data").at_most(kMostText),
      field<&RunJob::seconds>("seconds").above(0).up_to(kLongestS).may_be_missing(),
      field<&RunJob::pool>("pool").checked(check_hash).may_be_missing().omit_default()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const DeployJob*) {
  static constexpr core::Field kAll[] = {
      field<&DeployJob::bundle>("bundle").checked(check_hash),
      field<&DeployJob::pool>("pool").checked(check_hash).may_be_missing().omit_default()};
  return {.what = "request", .all = kAll, .others = OtherKeys::refused};
}

std::string_view kind_of(const JobRequest& request) { return kKinds[request.index()]; }

Result<JobRequest> parse_request(std::string_view kind, const core::JsonView& request) {
  constexpr auto kReaders = readers_of(static_cast<const JobRequest*>(nullptr));
  FLEETFIT_ASSIGN(const auto index, index_of(kind));
  if (!request.value().is_object()) return request.error("expected an object");
  return kReaders[index](request);
}

Json to_json(const JobRequest& request) {
  return std::visit([](const auto& job) { return core::to_json(job); }, request);
}

std::vector<std::string> files_of(const JobRequest& request) {
  return std::visit(FileLister{}, request);
}

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
