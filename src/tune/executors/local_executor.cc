#include <fmt/format.h>

#include "fleetfit/core/process.h"
#include "fleetfit/core/program.h"
#include "fleetfit/tune/executor.h"

namespace fleetfit::tune {
namespace {

using std::chrono::milliseconds;

// Longer than a worker takes to end its trial, which has ten seconds.
constexpr milliseconds kGrace{15'000};

class LocalExecutor final : public Executor {
 public:
  LocalExecutor() = default;
  LocalExecutor(const LocalExecutor&) = delete;
  LocalExecutor& operator=(const LocalExecutor&) = delete;
  // All are asked before the first is waited for.
  ~LocalExecutor() override {
    for (auto& worker : workers_)
      if (worker.process) worker.process->close_stdin();
  }

  Result<std::size_t> submit(const WorkerSpec& worker) override {
    FLEETFIT_ASSIGN(auto process, core::Process::start(worker.command, {.grace = kGrace,
                                                                        .orphan_grace = kGrace,
                                                                        .cores = worker.cores}));
    workers_.push_back({.process = std::move(process), .status = {}});
    return workers_.size() - 1;
  }

  Result<std::vector<WorkerStatus>> poll() override {
    std::vector<WorkerStatus> result;
    for (auto& worker : workers_) {
      look_at(worker);
      result.push_back(worker.status);
    }
    return result;
  }

  // Its input ends, which asks it to end; the conductor's death does the same.
  Status cancel(std::size_t worker) override {
    if (worker >= workers_.size())
      return fail(ErrorCode::not_found, fmt::format("there is no worker {}", worker));
    if (workers_[worker].process) workers_[worker].process->close_stdin();
    return {};
  }

 private:
  struct Worker {
    std::optional<core::Process> process;
    WorkerStatus status;
  };

  static void look_at(Worker& worker) {
    if (!worker.process) return;
    worker.status.state = WorkerState::running;
    const auto status = worker.process->listen(milliseconds(0));
    if (!status) return;
    const auto said = core::last_line(worker.process->error_output());
    worker.status = {.state = WorkerState::ended,
                     .succeeded = status->succeeded(),
                     .killed = status->signal != 0,
                     .ending = said.empty() ? to_string(*status)
                                            : fmt::format("{}: {}", to_string(*status), said)};
    worker.process.reset();
  }

  std::vector<Worker> workers_;
};

}  // namespace

Result<std::vector<std::size_t>> Executor::submit_all(std::span<const WorkerSpec> workers) {
  std::vector<std::size_t> handles;
  for (const auto& worker : workers) {
    FLEETFIT_ASSIGN(const auto handle, submit(worker));
    handles.push_back(handle);
  }
  return handles;
}

Status Executor::cancel_all() {
  FLEETFIT_ASSIGN(const auto workers, poll());
  for (std::size_t i = 0; i < workers.size(); ++i) FLEETFIT_TRY(cancel(i));
  return {};
}

std::unique_ptr<Executor> make_local_executor() { return std::make_unique<LocalExecutor>(); }

}  // namespace fleetfit::tune
