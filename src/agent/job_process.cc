#include <utility>

#include "fleetfit/agent/agent.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/program.h"

namespace fleetfit::agent {
namespace {

using namespace std::chrono_literals;

class ChildProcess final : public JobProcess {
 public:
  explicit ChildProcess(core::Process process) : process_(std::move(process)) {}

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
    return ProcessEnd{.status = *status, .last_words = core::last_line(process_.error_output())};
  }

  std::int64_t memory_bytes() override { return process_.memory_bytes(); }

  void kill() override { process_.stop(); }

 private:
  core::Process process_;
  bool output_ended_ = false;
};

class ChildProcesses final : public JobProcesses {
 public:
  explicit ChildProcesses(std::filesystem::path program) : program_(std::move(program)) {}

  Result<std::unique_ptr<JobProcess>> start(const std::filesystem::path& folder,
                                            const std::string& input) override {
    // OpenMP's threads would otherwise spin all the time between operators.
    core::ProcessOptions options{.environment = {{"GOMP_SPINCOUNT", "5000"}},
                                 .grace = 500ms,
                                 .leftovers = core::Leftovers::all};
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
