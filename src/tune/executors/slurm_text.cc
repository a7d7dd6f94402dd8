#include <fmt/format.h>

#include <array>
#include <charconv>
#include <vector>

#include "fleetfit/core/process.h"
#include "fleetfit/tune/slurm_executor.h"

namespace fleetfit::tune {
namespace {

using std::chrono::seconds;

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
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
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

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  for (const auto one : words)
    if (word == one) return true;
  return false;
}

// By the names of Slurm's manual. What is to be started again has not ended.
WorkerStatus status_of(std::string_view state, std::string_view reason, std::int64_t code) {
  constexpr std::array<std::string_view, 6> kWaiting{"PENDING",     "CONFIGURING",  "REQUEUED",
                                                     "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"};
  constexpr std::array<std::string_view, 6> kRunning{"RUNNING",   "COMPLETING", "SUSPENDED",
                                                     "STAGE_OUT", "RESIZING",   "SIGNALING"};
  if (is_one_of(state, kWaiting)) return {.state = WorkerState::starting};
  if (is_one_of(state, kRunning)) return {.state = WorkerState::running};
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

}  // namespace

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
    return fail(ErrorCode::invalid_input, fmt::format("squeue says '{}'", line));
  SlurmJob job{.id = fmt::format("{}_{}", parts[0], parts[1]),
               .status = status_of(parts[2], parts[4], whole_number(parts[5]).value_or(0))};
  if (const auto used = parse_time_used(parts[3])) job.status.ran = used;
  return job;
}

}  // namespace fleetfit::tune
