#include "agent/running_job.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/json.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/text.h"
#include "fleetfit/core/time.h"

namespace fleetfit::agent {
namespace {

using namespace std::chrono_literals;

constexpr double kLongestFetchS = 3600;
constexpr std::chrono::nanoseconds kMemoryInterval = 250ms;
constexpr std::size_t kMostReason = 2000;
constexpr std::size_t kMostLine = std::size_t{16} << 20;
constexpr int kMostLinesAtOnce = 1000;

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string shortened(std::string text) {
  text = core::one_line(std::move(text));
  if (text.size() > kMostReason) text = core::visible(text.substr(0, kMostReason)) + "...";
  return text;
}

std::string reason_of(const ProcessEnd& end) {
  std::string reason = "the job ended without a result";
  if (end.status.signal != 0) {
    const char* name = ::sigabbrev_np(end.status.signal);
    reason = fmt::format("the job was killed by signal {} (SIG{})", end.status.signal,
                         name != nullptr ? name : "?");
  } else if (end.status.code != 0) {
    reason = fmt::format("the job ended with exit status {}", end.status.code);
  }
  return end.last_words.empty() ? reason : reason + ": " + end.last_words;
}

}  // namespace

std::string time_text(std::chrono::system_clock::time_point time) {
  return core::time_text(std::chrono::floor<std::chrono::milliseconds>(time));
}

RunningJob::RunningJob(fleet::Assignment assignment, std::filesystem::path folder,
                       std::unique_ptr<JobProcess> process, const core::Clock& clock)
    : assignment_(std::move(assignment)),
      folder_(std::move(folder)),
      process_(std::move(process)),
      clock_(clock),
      begun_(clock.now()) {}

std::optional<fleet::Outcome> RunningJob::look(const std::function<void(NewEvent)>& on_event,
                                               const Log& log) {
  for (int lines = 0; lines < kMostLinesAtOnce; ++lines) {
    const auto line = process_->read_line();
    if (!line) break;
    take_line(*line, on_event, log);
  }
  if (const auto end = process_->ended()) return outcome_of(*end);
  watch_limits();
  return std::nullopt;
}

void RunningJob::take_line(const std::string& line, const std::function<void(NewEvent)>& on_event,
                           const Log& log) {
  const auto json = core::parse_json(line, "line", {.max_bytes = kMostLine});
  const auto ok =
      json ? take_message(core::JsonView(*json, "line"), on_event) : tl::unexpected(json.error());
  if (!ok) log(fmt::format("job {}: {}", assignment_.attempt.job, ok.error().message));
}

Status RunningJob::take_message(const core::JsonView& message,
                                const std::function<void(NewEvent)>& on_event) {
  FLEETFIT_ASSIGN(const auto what, message.text("line"));
  if (what == "started") {
    works_ = true;
    begun_ = clock_.now();
    return {};
  }
  if (what == "event") {
    auto kind = message.text("kind");
    const auto body = message.at("body");
    FLEETFIT_TRY(kind);
    FLEETFIT_TRY(body);
    NewEvent event{.time = time_text(clock_.date()),
                   .kind = *std::move(kind),
                   .job = assignment_.attempt.job,
                   .body = core::format_json_line(body->value())};
    if (event.kind == "latency") note_serving(event.body);
    on_event(std::move(event));
    return {};
  }
  if (what != "outcome") return message.error("line: expected started, event or outcome");
  const auto finished = message.boolean("finished");
  auto reason = message.text_or("reason", "");
  const auto result = message.at("result");
  FLEETFIT_TRY(finished);
  FLEETFIT_TRY(reason);
  FLEETFIT_TRY(result);
  // What a process says when it is asked to end is no result.
  if (!stop_reason_.empty()) return {};
  outcome_ = fleet::Outcome{.attempt = assignment_.attempt,
                            .finished = *finished,
                            .reason = shortened(*std::move(reason)),
                            .result = core::format_json_line(result->value())};
  return {};
}

void RunningJob::note_serving(const std::string& body) {
  auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;
  if (const auto* run = std::get_if<fleet::RunJob>(&assignment_.request))
    json["bundle"] = run->bundle;
  serving_ = core::format_json_line(json);
}

void RunningJob::watch_limits() {
  if (!stop_reason_.empty()) return;
  const auto now = clock_.now();
  const double elapsed_s = seconds(now - begun_);
  const auto& limits = assignment_.limits;
  if (works_ && elapsed_s > limits.seconds) {
    stop(fmt::format("the job took longer than {:g} s and was ended", limits.seconds));
    return;
  }
  if (!works_ && elapsed_s > kLongestFetchS) {
    stop("the job's files could not be fetched within an hour");
    return;
  }
  if (limits.memory_bytes <= 0 || now - memory_looked_at_ < kMemoryInterval) return;
  memory_looked_at_ = now;
  const auto bytes = process_->memory_bytes();
  if (bytes > limits.memory_bytes) {
    stop(fmt::format("the job took {} bytes of memory, of which it may have {}, and was ended",
                     bytes, limits.memory_bytes));
  }
}

void RunningJob::stop(std::string reason) {
  if (!stop_reason_.empty()) return;
  stop_reason_ = std::move(reason);
  process_->kill();
}

fleet::Outcome RunningJob::failed(std::string reason) const {
  return {.attempt = assignment_.attempt, .reason = shortened(std::move(reason))};
}

fleet::Outcome RunningJob::outcome_of(const ProcessEnd& end) const {
  // What was done before the process was ended counts.
  if (outcome_) return *outcome_;
  return failed(stop_reason_.empty() ? reason_of(end) : stop_reason_);
}

}  // namespace fleetfit::agent
