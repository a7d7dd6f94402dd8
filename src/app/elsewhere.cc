#include "fleetfit/app/elsewhere.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

#include "fleetfit/core/file.h"
#include "fleetfit/core/sleep.h"

namespace fleetfit::app {
namespace {

using std::chrono::milliseconds;

/// A shell that writes what the command prints into a file.
tune::WorkerSpec spec_of(const ElsewhereRequest& request, const std::filesystem::path& output) {
  tune::WorkerSpec spec{
      .command = {"sh", "-c", R"(out=$1; shift; exec "$@" > "$out")", "sh", output.string()},
      .name = "command"};
  spec.command.insert(spec.command.end(), request.command.begin(), request.command.end());
  return spec;
}

Result<tune::WorkerStatus> wait_for_end(tune::Executor& executor, std::size_t job,
                                        const std::stop_token& stop) {
  constexpr milliseconds kBetween{500};
  do {
    const auto statuses = executor.poll();
    if (!statuses) return tl::unexpected(statuses.error());
    if (statuses->at(job).state == tune::WorkerState::ended) return statuses->at(job);
  } while (core::sleep_unless_stopped(kBetween, stop));
  if (auto cancelled = executor.cancel_all(); !cancelled)
    return tl::unexpected(std::move(cancelled.error()));
  return fail(ErrorCode::cancelled, "stopped");
}

/// What the job has printed. A shared folder may show the file some time after the job has ended.
Result<std::string> read_output(const std::filesystem::path& output, const std::stop_token& stop) {
  constexpr milliseconds kBetweenLooks{500};
  constexpr int kMostLooks = 120;
  auto text = core::read_file(output);
  for (int look = 1; !text && look < kMostLooks; ++look) {
    if (!core::sleep_unless_stopped(kBetweenLooks, stop)) break;
    text = core::read_file(output);
  }
  return text;
}

}  // namespace

Result<std::string> run_elsewhere(const ElsewhereRequest& request, tune::Executor& executor,
                                  core::Progress& progress, const std::stop_token& stop) {
  core::ProgressTask task(progress, {.name = "job", .total = 1, .unit = "jobs"});
  std::error_code problem;
  std::filesystem::create_directories(request.folder, problem);
  const auto output = request.folder / fmt::format("output-{}", ::getpid());
  for (int attempt = 1;; ++attempt) {
    const auto job = executor.submit(spec_of(request, output));
    if (!job) return tl::unexpected(job.error());
    const auto status = wait_for_end(executor, *job, stop);
    if (!status) return tl::unexpected(status.error());
    if (status->succeeded) break;
    if (!status->killed || attempt == request.attempts)
      return fail(ErrorCode::device_failed, fmt::format("the job failed: {}", status->ending));
    task.message(fmt::format("the job was killed ({}); it goes on as another one", status->ending));
  }
  task.advance();
  auto text = read_output(output, stop);
  std::filesystem::remove(output, problem);
  return text;
}

}  // namespace fleetfit::app
