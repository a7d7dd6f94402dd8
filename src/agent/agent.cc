#include "fleetfit/agent/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "agent/backoff.h"
#include "agent/job_file.h"
#include "agent/running_job.h"
#include "agent/spool.h"
#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/sleep.h"

namespace fleetfit::agent {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::size_t kMostOutcomes = 20;
constexpr std::size_t kMostEvents = 500;
constexpr nanoseconds kEventInterval = 1s;
constexpr nanoseconds kJobInterval = 100ms;
constexpr double kRefusedPauseS = 60;

nanoseconds from_seconds(double seconds) { return nanoseconds(std::llround(seconds * 1e9)); }

nlohmann::json plain(const nlohmann::ordered_json& json) { return json; }

/// Whether the server has refused what was sent, and not who has sent it.
bool is_about_the_message(const fleet::CallError& error) {
  constexpr int kBadRequest = 400;
  constexpr int kTooLarge = 413;
  constexpr int kNotUnderstood = 422;
  return error.status == kBadRequest || error.status == kTooLarge || error.status == kNotUnderstood;
}

/// Keeps a second agent out of the folder as long as it is open.
Result<core::FileDescriptor> lock_folder(const fs::path& folder) {
  const auto file = folder / "lock";
  core::FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.is_open())
    return fail(ErrorCode::io, fmt::format("{}: {}", file.string(), core::system_message(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: another agent works with this folder", folder.string()));
  return lock;
}

class FleetAgent final : public Agent {
 public:
  FleetAgent(AgentOptions options, fleet::Client& server, JobProcesses& processes,
             const core::Clock& clock, Log log, core::FileDescriptor lock, Spool spool)
      : options_(std::move(options)),
        server_(server),
        processes_(processes),
        clock_(clock),
        log_(std::move(log)),
        lock_(std::move(lock)),
        spool_(std::move(spool)),
        backoff_(options_.seed) {}

  void step() override {
    look_after_job();
    if (clock_.now() < backoff_.until()) return;
    for (const auto part : {&FleetAgent::sign_on, &FleetAgent::send_outcomes,
                            &FleetAgent::send_events, &FleetAgent::heartbeat, &FleetAgent::claim})
      if (!(this->*part)()) return;
  }

  nanoseconds next_step() const override {
    const auto now = clock_.now();
    auto next = std::max(next_heartbeat_, backoff_.until());
    if (!registered_) next = backoff_.until();
    if (spool_.has_outcomes()) next = backoff_.until();
    if (spool_.has_events()) next = std::min(next, std::max(next_events_, backoff_.until()));
    if (job_) next = std::min(next, now + kJobInterval);
    return next;
  }

 private:
  bool sign_on();
  bool send_outcomes();
  bool send_events();
  bool heartbeat();
  bool claim();

  void look_after_job();
  void end_job(fleet::Outcome outcome);
  void take_assignments(const nlohmann::json& reply);
  void start(fleet::Assignment assignment);
  void keep(const fleet::Outcome& outcome);
  bool failed(std::string_view call, const fleet::CallError& error);
  void refused(const fleet::Outcome& outcome, const fleet::CallError& error);

  AgentOptions options_;
  fleet::Client& server_;
  JobProcesses& processes_;
  const core::Clock& clock_;
  Log log_;
  core::FileDescriptor lock_;
  Spool spool_;
  Backoff backoff_;
  std::optional<RunningJob> job_ = std::nullopt;
  bool registered_ = false;
  bool may_claim_ = false;
  nanoseconds next_heartbeat_{};
  nanoseconds next_events_{};
};

/// Gives false: no further call is to be made now.
bool FleetAgent::failed(std::string_view call, const fleet::CallError& error) {
  const bool known = backoff_.failures() > 0;
  backoff_.failed(clock_.now(), error.passing() ? error.retry_after_s : kRefusedPauseS);
  // A server that is away is said once, and then sometimes.
  if (!known || backoff_.failures() % 10 == 0 || !error.passing())
    log_(fmt::format("{}: {}", call, error.message));
  // A token that was revoked or a device that was removed may come back: all begins again.
  if (!error.passing()) registered_ = false;
  return false;
}

bool FleetAgent::sign_on() {
  if (registered_) return true;
  const auto reply = server_.post("/agent/register", plain(to_json(options_.registration)));
  if (!reply) return failed("register", reply.error());
  const auto known = core::JsonView(*reply, "register").integer_or("last_sequence", 0, {.min = 0});
  if (known) spool_.skip_numbers(*known);
  backoff_.succeeded();
  registered_ = true;
  may_claim_ = true;
  next_heartbeat_ = clock_.now();
  log_(fmt::format("registered as {}", options_.registration.name));
  return true;
}

void FleetAgent::refused(const fleet::Outcome& outcome, const fleet::CallError& error) {
  log_(fmt::format("the result of job {} was refused: {}", outcome.attempt.job, error.message));
  spool_.remove_outcome(outcome.attempt);
  // The server has to hear of the job's end all the same, but for the part that it refuses.
  if (outcome.result == "{}") return;
  keep({.attempt = outcome.attempt,
        .reason = fmt::format("the server refused the result: {}", error.message)});
}

bool FleetAgent::send_outcomes() {
  std::size_t most = kMostOutcomes;
  while (spool_.has_outcomes()) {
    const auto outcomes = spool_.outcomes(most);
    if (outcomes.empty()) break;
    const auto reply = server_.post("/agent/results", plain(to_json(outcomes)));
    if (reply) {
      for (const auto& outcome : outcomes) spool_.remove_outcome(outcome.attempt);
      backoff_.succeeded();
      may_claim_ = true;
      continue;
    }
    if (!is_about_the_message(reply.error())) return failed("results", reply.error());
    // One that is refused must not take others with it.
    if (outcomes.size() == 1) refused(outcomes.front(), reply.error());
    most = 1;
  }
  return true;
}

bool FleetAgent::send_events() {
  const auto now = clock_.now();
  if (now < next_events_ || !spool_.has_events()) return true;
  next_events_ = now + kEventInterval;
  const auto events = spool_.events(kMostEvents);
  if (events.empty()) return true;
  const auto reply = server_.post("/agent/events", plain(to_json(events)));
  if (!reply) {
    if (!is_about_the_message(reply.error())) return failed("events", reply.error());
    log_(fmt::format("{} events were refused: {}", events.size(), reply.error().message));
  } else if (const auto dropped =
                 core::JsonView(*reply, "events").integer_or("dropped", 0, {.min = 0});
             dropped && *dropped > 0) {
    log_(fmt::format("the server has dropped {} of {} events", *dropped, events.size()));
  }
  spool_.remove_events(events.back().sequence);
  backoff_.succeeded();
  return true;
}

bool FleetAgent::heartbeat() {
  const auto now = clock_.now();
  if (now < next_heartbeat_) return true;
  fleet::Heartbeat message;
  if (job_) {
    message.running.push_back(job_->attempt());
    message.serving = job_->serving();
  }
  const auto sent = server_.post("/agent/heartbeat", plain(to_json(message)));
  if (!sent) return failed("heartbeat", sent.error());
  const auto reply = fleet::parse_heartbeat_reply(core::JsonView(*sent, "heartbeat"));
  if (!reply) return failed("heartbeat", {.message = reply.error().message});
  backoff_.succeeded();
  // A lease has to outlive a heartbeat that is lost.
  next_heartbeat_ = now + from_seconds(std::min(options_.heartbeat_s, reply->lease_s / 3));
  may_claim_ = may_claim_ || reply->waiting > 0;
  if (job_ && std::ranges::find(reply->cancel, job_->attempt().job) != reply->cancel.end())
    job_->stop("the job was cancelled");
  return true;
}

bool FleetAgent::claim() {
  if (job_ || !may_claim_) return true;
  const auto reply = server_.post("/agent/claim", {{"most", 1}});
  if (!reply) return failed("claim", reply.error());
  backoff_.succeeded();
  may_claim_ = false;
  take_assignments(*reply);
  return true;
}

void FleetAgent::take_assignments(const nlohmann::json& reply) {
  const core::JsonView view(reply, "claim");
  auto jobs = fleet::parse_assignments(view);
  if (jobs) {
    for (auto& job : *jobs) start(std::move(job));
    return;
  }
  log_(jobs.error().message);
  // What this agent does not understand has failed; else the server would give it out again.
  const auto items = view.items("jobs");
  if (!items) return;
  for (const auto& item : *items) {
    const auto id = item.integer("id", {.min = 1});
    const auto attempt = item.integer("attempt", {.min = 1});
    if (id && attempt) keep({.attempt = {*id, *attempt}, .reason = jobs.error().message});
  }
}

void FleetAgent::start(fleet::Assignment assignment) {
  if (job_) return;  // more than were asked for: its lease ends, and it comes again
  const auto attempt = assignment.attempt;
  const auto folder =
      options_.jobs.state / "jobs" / fmt::format("{}-{}", attempt.job, attempt.attempt);
  log_(fmt::format("job {}: {}, attempt {}", attempt.job, kind_of(assignment.request),
                   attempt.attempt));
  auto written = write_job_file(
      folder,
      {.assignment = assignment, .device = options_.registration.name, .options = options_.jobs});
  auto process =
      written ? processes_.start(folder, options_.connection) : tl::unexpected(written.error());
  if (!process) {
    keep({.attempt = attempt, .reason = process.error().message});
    return;
  }
  job_.emplace(std::move(assignment), folder, *std::move(process), clock_);
  next_heartbeat_ = clock_.now();
}

void FleetAgent::look_after_job() {
  if (!job_) return;
  const auto on_event = [this](const NewEvent& event) {
    if (auto ok = spool_.add_event(event); !ok) log_(ok.error().message);
  };
  auto outcome = job_->look(on_event, log_);
  if (outcome) end_job(*std::move(outcome));
}

void FleetAgent::end_job(fleet::Outcome outcome) {
  log_(outcome.finished ? fmt::format("job {}: finished", outcome.attempt.job)
                        : fmt::format("job {}: failed: {}", outcome.attempt.job, outcome.reason));
  keep(outcome);
  std::error_code ignored;
  fs::remove_all(job_->folder(), ignored);
  job_.reset();
  next_heartbeat_ = clock_.now();
}

void FleetAgent::keep(const fleet::Outcome& outcome) {
  if (auto ok = spool_.add_outcome(outcome); !ok)
    log_(fmt::format("the result of job {} is lost: {}", outcome.attempt.job, ok.error().message));
}

}  // namespace

Result<std::unique_ptr<Agent>> open_agent(AgentOptions options, fleet::Client& server,
                                          JobProcesses& processes, const core::Clock& clock,
                                          Log log) {
  const auto& state = options.jobs.state;
  std::error_code error;
  fs::create_directories(state, error);
  if (!error) fs::permissions(state, fs::perms::owner_all, error);
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", state.string(), error.message()));
  FLEETFIT_ASSIGN(auto lock, lock_folder(state));
  fs::remove_all(state / "jobs", error);
  const auto since_1970 =
      std::chrono::floor<std::chrono::milliseconds>(clock.date()).time_since_epoch();
  FLEETFIT_ASSIGN(auto spool,
                  Spool::open(state / "spool", std::max<std::int64_t>(1, since_1970.count())));
  return std::make_unique<FleetAgent>(std::move(options), server, processes, clock, std::move(log),
                                      std::move(lock), std::move(spool));
}

void run_agent(Agent& agent, const core::Clock& clock, const std::stop_token& stop) {
  constexpr nanoseconds kShortest = 10ms;
  constexpr nanoseconds kLongest = 1s;
  while (!stop.stop_requested()) {
    agent.step();
    const auto pause = std::clamp(agent.next_step() - clock.now(), kShortest, kLongest);
    core::sleep_unless_stopped(std::chrono::ceil<std::chrono::milliseconds>(pause), stop);
  }
}

}  // namespace fleetfit::agent
