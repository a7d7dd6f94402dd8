#include "fleetfit/tune/executor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <system_error>
#include <vector>

#include "fleetfit/core/process.h"
#include "fleetfit/core/program.h"

namespace fleetfit::tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Of one command to the controller; its own time-out is shorter.
constexpr seconds kPatience{90};
// A job that was submitted so long ago and is not in the list has ended and been forgotten.
constexpr seconds kForgotten{60};

// What Slurm's commands say when the controller does not answer, is starting, or has too much to
// do.
bool is_passing(std::string_view message) {
  constexpr std::array<std::string_view, 8> kSigns{
      "Unable to contact slurm controller", "Socket timed out", "Connection refused",
      "Zero Bytes were transmitted",        "Connection reset", "Transport endpoint",
      "Resource temporarily unavailable",   "backup controller"};
  for (const auto sign : kSigns)
    if (message.find(sign) != std::string_view::npos) return true;
  return false;
}

// The output; `io` if it can be tried again later.
Result<std::string> ask_slurm(std::vector<std::string> command, std::string input = {}) {
  const std::string program = command.front();
  FLEETFIT_ASSIGN(auto done,
                  core::run(std::move(command), {.input = std::move(input), .timeout = kPatience}));
  if (done.succeeded()) return std::move(done.output);
  const auto said = core::one_line(done.error_output);
  const bool passing = done.timed_out || is_passing(said);
  return fail(passing ? ErrorCode::io : ErrorCode::device_failed,
              fmt::format("{}: {}", program, said.empty() ? to_string(done.status) : said));
}

// The end of a job's log, as far as it can be seen here by now.
std::string last_line(const fs::path& log) {
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return core::one_line(last);
}

// --- What Slurm is given and says ---

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string command_text(const WorkerSpec& worker) {
  std::string text = "exec";
  for (const auto& word : worker.command) text += " " + shell_word(word);
  return text;
}

std::string resource_lines(const Resources& resources) {
  std::string text;
  const auto line = [&](std::string_view flag, const auto& value) {
    text += fmt::format("#SBATCH --{}={}\n", flag, value);
  };
  if (resources.cores) line("cpus-per-task", *resources.cores);
  if (resources.memory_bytes)
    line("mem", fmt::format("{}K", (*resources.memory_bytes + 1023) / 1024));
  if (resources.gpus) line("gpus-per-task", *resources.gpus);
  if (resources.time_min) {
    line("time", *resources.time_min);
    line("signal", "B:TERM@60");  // a minute to give its trial back
  }
  if (!resources.partition.empty()) line("partition", resources.partition);
  if (!resources.constraint.empty()) line("constraint", resources.constraint);
  if (!resources.account.empty()) line("account", resources.account);
  return text;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

// "1-02:03:04", "02:03:04" or "3:04".
std::optional<seconds> parse_time_used(std::string_view text) {
  std::int64_t days = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto number = whole_number(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  std::int64_t rest = 0;
  for (const auto part : split(text, ':')) {
    const auto number = whole_number(part);
    if (!number) return std::nullopt;
    rest = rest * 60 + *number;
  }
  return seconds(days * 86'400 + rest);
}

// By the names of Slurm's manual. What is to be started again has not ended.
WorkerStatus status_of(std::string_view state, std::string_view reason, std::int64_t code) {
  constexpr std::array<std::string_view, 6> kWaiting{"PENDING",     "CONFIGURING",  "REQUEUED",
                                                     "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"};
  constexpr std::array<std::string_view, 6> kRunning{"RUNNING",   "COMPLETING", "SUSPENDED",
                                                     "STAGE_OUT", "RESIZING",   "SIGNALING"};
  if (std::ranges::count(kWaiting, state) > 0) return {.state = WorkerState::starting};
  if (std::ranges::count(kRunning, state) > 0) return {.state = WorkerState::running};
  if (state == "COMPLETED") return {.state = WorkerState::ended, .succeeded = true};
  // A program that ended by itself is to blame; all else was done to it.
  if (state == "FAILED") {
    const core::ExitStatus exit{.code = static_cast<int>(code >> 8 & 0xff),
                                .signal = static_cast<int>(code & 0x7f)};
    return {.state = WorkerState::ended, .killed = exit.signal != 0, .ending = to_string(exit)};
  }
  const bool has_reason = !reason.empty() && reason != "None" && reason != state;
  return {.state = WorkerState::ended,
          .killed = true,
          .ending = has_reason ? fmt::format("Slurm says {} ({})", state, reason)
                               : fmt::format("Slurm says {}", state)};
}

// --- The executor ---

class SlurmExecutor final : public Executor {
 public:
  SlurmExecutor(const core::Clock& clock, SlurmOptions options)
      : clock_(clock), options_(std::move(options)) {}
  SlurmExecutor(const SlurmExecutor&) = delete;
  SlurmExecutor& operator=(const SlurmExecutor&) = delete;
  ~SlurmExecutor() override {
    for (const auto& worker : workers_)
      if (worker.status.state != WorkerState::ended) {
        static_cast<void>(cancel_all());
        return;
      }
  }

  Result<std::size_t> submit(const WorkerSpec& worker) override {
    return submit_all(std::span(&worker, 1)).map([](const auto& handles) {
      return handles.front();
    });
  }

  Result<std::vector<std::size_t>> submit_all(std::span<const WorkerSpec> specs) override {
    std::vector<std::size_t> handles;
    for (const auto& spec : specs) {
      handles.push_back(workers_.size());
      workers_.push_back({.spec = spec});
    }
    FLEETFIT_TRY(send_waiting());
    return handles;
  }

  Result<std::vector<WorkerStatus>> poll() override {
    const auto now = clock_.now();
    if (!asked_at_ || now - *asked_at_ >= options_.between_questions) {
      asked_at_ = now;
      FLEETFIT_TRY(send_waiting());
      FLEETFIT_TRY(look());
    }
    std::vector<WorkerStatus> statuses;
    for (const auto& worker : workers_) statuses.push_back(worker.status);
    return statuses;
  }

  Status cancel(std::size_t worker) override {
    if (worker >= workers_.size())
      return fail(ErrorCode::not_found, fmt::format("there is no worker {}", worker));
    auto& one = workers_[worker];
    if (one.id.empty()) {
      one.status = {.state = WorkerState::ended, .succeeded = true};
      return {};
    }
    return ask_slurm({"scancel", one.id}).map([](const std::string& /*nothing*/) {});
  }

  // By name: also what sbatch has taken without our hearing its answer.
  Status cancel_all() override {
    for (auto& worker : workers_)
      if (worker.id.empty()) worker.status = {.state = WorkerState::ended, .succeeded = true};
    asked_at_.reset();
    return cancel_by_name();
  }

 private:
  struct Worker {
    WorkerSpec spec = {};
    std::string id = {};  // "JOB_TASK"; empty: not submitted yet
    std::chrono::nanoseconds submitted{0};
    WorkerStatus status = {};
  };

  // All that were not submitted yet, as one array. Fails only on what will not pass.
  Status send_waiting() {
    std::vector<std::size_t> waiting;
    std::vector<WorkerSpec> specs;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].id.empty() || workers_[i].status.state == WorkerState::ended) continue;
      waiting.push_back(i);
      specs.push_back(workers_[i].spec);
    }
    if (waiting.empty()) return {};
    if (auto begun = begin(); !begun) return unless_passing(begun.error());
    const auto answer = ask_slurm({"sbatch", "--parsable"}, slurm_script(options_, specs));
    if (!answer) return unless_passing(answer.error());
    answered();
    // "JOB" or "JOB;CLUSTER".
    const auto job = answer->substr(0, answer->find_first_of(";\n"));
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      workers_[waiting[i]].id = fmt::format("{}_{}", job, i);
      workers_[waiting[i]].submitted = clock_.now();
    }
    return {};
  }

  // Jobs of a predecessor that was killed would work beside ours.
  Status begin() {
    if (has_begun_) return {};
    std::error_code error;
    fs::create_directories(options_.folder, error);
    if (error)
      return fail(ErrorCode::device_failed, fmt::format("{}: cannot be created: {}",
                                                        options_.folder.string(), error.message()));
    FLEETFIT_TRY(cancel_by_name());
    has_begun_ = true;
    return {};
  }

  Status cancel_by_name() const {
    return ask_slurm(
               {"scancel", "--name=" + options_.job_name, "--user=" + std::to_string(::getuid())})
        .map([](const std::string& /*nothing*/) {});
  }

  Status look() {
    const auto answer =
        ask_slurm({"squeue", "--noheader", "--array", "--states=all", "--name=" + options_.job_name,
                   fmt::format("--Format={}", kSqueueFormat)});
    if (!answer) return unless_passing(answer.error());
    answered();
    std::map<std::string, WorkerStatus, std::less<>> states;
    // An array that nothing of has been started yet may stand there as a whole.
    for (const auto line : split(*answer, '\n'))
      if (auto job = parse_squeue_line(line)) states[job->id] = job->status;
    for (auto& worker : workers_) note(worker, states);
    return {};
  }

  void note(Worker& worker, const std::map<std::string, WorkerStatus, std::less<>>& states) const {
    if (worker.id.empty() || worker.status.state == WorkerState::ended) return;
    const auto found = states.find(worker.id);
    if (found != states.end()) {
      worker.status = found->second;
    } else if (clock_.now() - worker.submitted > kForgotten) {
      worker.status = {
          .state = WorkerState::ended, .killed = true, .ending = "Slurm does not know it any more"};
    }
    if (worker.status.state != WorkerState::ended || worker.status.succeeded) return;
    if (const auto said = last_line(options_.folder / (worker.id + ".log")); !said.empty())
      worker.status.ending += ": " + said;
  }

  // A controller that does not answer is waited for.
  Status unless_passing(const Error& error) {
    if (error.code != ErrorCode::io) return tl::unexpected(error);
    if (!is_waiting_ && options_.say)
      options_.say(fmt::format("waiting until Slurm answers again: {}", error.message));
    is_waiting_ = true;
    return {};
  }

  void answered() {
    if (is_waiting_ && options_.say) options_.say("Slurm answers again");
    is_waiting_ = false;
  }

  const core::Clock& clock_;
  SlurmOptions options_;
  std::vector<Worker> workers_;
  std::optional<std::chrono::nanoseconds> asked_at_;
  bool has_begun_ = false;
  bool is_waiting_ = false;
};

}  // namespace

std::unique_ptr<Executor> make_slurm_executor(const core::Clock& clock, SlurmOptions options) {
  return std::make_unique<SlurmExecutor>(clock, std::move(options));
}

std::string slurm_script(const SlurmOptions& options, std::span<const WorkerSpec> workers) {
  std::string text = "#!/bin/bash\n";
  text += fmt::format("#SBATCH --job-name={}\n", options.job_name);
  text += fmt::format("#SBATCH --array=0-{}{}\n", workers.size() - 1,
                      options.most_at_once > 0 ? fmt::format("%{}", options.most_at_once) : "");
  text += "#SBATCH --nodes=1\n#SBATCH --ntasks=1\n";
  text += fmt::format("#SBATCH --output={}/%A_%a.log\n", options.folder.string());
  // A lost node's job is run again, and its log goes on.
  text += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
  text += resource_lines(options.resources);
  text += "case $SLURM_ARRAY_TASK_ID in\n";
  for (std::size_t i = 0; i < workers.size(); ++i)
    text += fmt::format("{}) {} ;;\n", i, command_text(workers[i]));
  return text + "esac\n";
}

Result<SlurmJob> parse_squeue_line(std::string_view line) {
  const auto parts = split(line, '|');
  if (parts.size() < 6 || !whole_number(parts[0]) || !whole_number(parts[1]))
    return core::refuse(fmt::format("squeue says '{}'", line));
  SlurmJob job{.id = fmt::format("{}_{}", parts[0], parts[1]),
               .status = status_of(parts[2], parts[4], whole_number(parts[5]).value_or(0))};
  if (const auto used = parse_time_used(parts[3])) job.status.ran = used;
  return job;
}

}  // namespace fleetfit::tune
