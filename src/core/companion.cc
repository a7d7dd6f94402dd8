#include "fleetfit/core/companion.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "fleetfit/core/file_descriptor.h"

namespace fleetfit::core {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::vector<std::string> command_of(const fs::path& program,
                                    const std::vector<std::string>& arguments) {
  std::vector<std::string> command{program.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

void unblock_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// Reads while it runs, so that a companion with much to say does not wait for us for ever.
Result<std::string> read_all(Process& process, const CompanionOptions& options) {
  std::string output;
  const std::stop_callback pass_on(options.stop, [&] { process.ask_to_end(); });
  while (true) {
    FLEETFIT_ASSIGN(auto line, process.read_line(24h));
    if (!line) return output;
    output += *line + '\n';
    if (output.size() > options.max_output_bytes)
      return fail(ErrorCode::device_failed, "says more than can be kept");
  }
}

}  // namespace

Result<fs::path> running_program() {
  std::error_code error;
  auto self = fs::read_symlink("/proc/self/exe", error);
  if (!error) return self;
  return fail(ErrorCode::io,
              fmt::format("the running program cannot be found: {}", error.message()));
}

Result<fs::path> find_companion(std::string_view name) {
  FLEETFIT_ASSIGN(const auto self, running_program());
  std::error_code error;
  auto path = self.parent_path() / name;
  if (::access(path.c_str(), X_OK) != 0 || !fs::is_regular_file(path, error)) {
    return fail(ErrorCode::not_found,
                fmt::format("{} is not installed beside {} (in {})", name, self.filename().string(),
                            self.parent_path().string()));
  }
  return path;
}

Error become_companion(std::string_view name, const std::vector<std::string>& arguments) {
  const auto path = find_companion(name);
  if (!path) return path.error();
  auto command = command_of(*path, arguments);
  std::vector<char*> argv;
  for (auto& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);

  if (std::fflush(stdout) != 0) return {ErrorCode::io, "standard output cannot be written"};
  unblock_signals();  // an image that is replaced hands on which signals it held back
  ::execv(path->c_str(), argv.data());
  return {ErrorCode::io, fmt::format("cannot start {}: {}", path->string(), system_message(errno))};
}

Result<CompanionOutput> run_companion(std::string_view name,
                                      const std::vector<std::string>& arguments,
                                      const CompanionOptions& options) {
  FLEETFIT_ASSIGN(const auto path, find_companion(name));
  FLEETFIT_ASSIGN(auto process, Process::start(command_of(path, arguments),
                                               {.environment = options.environment,
                                                .error_output = ErrorOutput::inherit,
                                                .max_line_bytes = options.max_output_bytes}));
  process.close_stdin();

  FLEETFIT_ASSIGN(auto output, core::within(name, read_all(process, options)));
  auto status = process.wait(10s);
  return CompanionOutput{.status = status ? *status : process.stop(), .output = std::move(output)};
}

}  // namespace fleetfit::core
