#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <utility>
#include <vector>

#include "fleetfit/agent/agent.h"
#include "fleetfit/core/process.h"

namespace fleetfit::agent {
namespace {

using namespace std::chrono_literals;

/// Processes that the process has started, in all of its threads.
std::vector<int> children_of(int pid) {
  std::vector<int> children;
  std::error_code error;
  const auto tasks = fmt::format("/proc/{}/task", pid);
  for (auto task = std::filesystem::directory_iterator(tasks, error);
       !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    std::ifstream list(task->path() / "children");
    for (int child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

std::vector<int> with_descendants(int pid) {
  std::vector<int> all{pid};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const int child : children_of(all[i])) all.push_back(child);
  return all;
}

std::int64_t resident_bytes(int pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  if (!(file >> pages >> resident)) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// Once the job's own process has ended, all children that we have are what it left running: we are
/// the parent of orphans.
void end_orphans() {
  constexpr int kGenerations = 100;
  for (int round = 0; round < kGenerations; ++round) {
    const auto orphans = children_of(::getpid());
    if (orphans.empty()) return;
    for (const int pid : orphans) {
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of("\n\r ");
  if (end == std::string::npos) return "";
  const auto start = text.find_last_of('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1) + 1);
}

class ChildProcess final : public JobProcess {
 public:
  explicit ChildProcess(core::Process process) : process_(std::move(process)) {}
  ~ChildProcess() override { kill(); }

  std::optional<std::string> read_line() override {
    if (output_ended_) return std::nullopt;
    auto line = process_.read_line(0ms);
    if (!line) return std::nullopt;  // nothing yet
    output_ended_ = !*line;
    return *std::move(line);
  }

  std::optional<ProcessEnd> ended() override {
    if (!output_ended_) return std::nullopt;
    const auto status = process_.wait(0ms);
    if (!status) return std::nullopt;
    end_orphans();
    return ProcessEnd{.status = *status, .last_words = last_line(process_.error_output())};
  }

  std::int64_t memory_bytes() override {
    std::int64_t bytes = 0;
    for (const int pid : with_descendants(process_.pid())) bytes += resident_bytes(pid);
    return bytes;
  }

  void kill() override {
    process_.stop();
    end_orphans();
  }

 private:
  core::Process process_;
  bool output_ended_ = false;
};

class ChildProcesses final : public JobProcesses {
 public:
  explicit ChildProcesses(std::filesystem::path program) : program_(std::move(program)) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  Result<std::unique_ptr<JobProcess>> start(const std::filesystem::path& folder,
                                            const std::string& input) override {
    // OpenMP's threads would otherwise spin all the time between operators.
    core::ProcessOptions options{.environment = {{"GOMP_SPINCOUNT", "5000"}}, .grace = 500ms};
    FLEETFIT_ASSIGN(auto process,
                    core::Process::start({program_.string(), "job", folder.string()}, options));
    // One that does not read its order crashed or will fail: its end says why, better than the
    // pipe.
    static_cast<void>(process.write(input + "\n", 5s));
    process.close_stdin();
    return std::make_unique<ChildProcess>(std::move(process));
  }

 private:
  std::filesystem::path program_;
};

}  // namespace

std::unique_ptr<JobProcesses> make_job_processes(std::filesystem::path program) {
  return std::make_unique<ChildProcesses>(std::move(program));
}

}  // namespace fleetfit::agent
