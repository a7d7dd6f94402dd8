#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/result.h"

namespace fleetfit::core {

/// The name of a guard, as the kernel has it: not that of the program that it is a fork of.
inline constexpr const char* kGuardName = "fleetfit-guard";

/// What a guard starts.
struct GuardedProgram {
  std::vector<std::string> argv = {};
  std::vector<std::string> environment = {};  ///< all of it, "NAME=value"
  FileDescriptor input = {};                  ///< become the standard ones; all above those
  FileDescriptor output = {};
  FileDescriptor errors = {};
};

/// A process between us and a program. It kills the program with its group when we end, adopts what
/// leaves the group if that is to be killed too, and knows the CPU time of all of it.
class ProcessGuard {
 public:
  struct End {
    ExitStatus status = {.signal = SIGKILL};
    bool is_known = false;  ///< false: the guard was killed, and the program with it
    double cpu_s = 0;       ///< of the program and all that it started
  };

  /// The program runs when this is done. Of the options it takes those on starting and ending.
  static Result<ProcessGuard> start(GuardedProgram program, const ProcessOptions& options);

  ProcessGuard(ProcessGuard&& other) noexcept = default;
  ProcessGuard& operator=(ProcessGuard&&) noexcept = delete;
  /// Kills the program.
  ~ProcessGuard();

  pid_t guard() const { return guard_; }
  /// The program's id, which is its group's, too.
  pid_t program() const { return program_; }
  /// A descriptor that becomes readable when the program has ended.
  int end_signal() const { return line_.get(); }

  void ask_to_end() const;
  void kill() const;

  /// How it ended, if it has; does not wait.
  const std::optional<End>& look();
  /// Waits until it and what is killed with it are gone.
  const End& collect();
  const std::optional<End>& end() const { return end_; }

 private:
  ProcessGuard(pid_t guard, FileDescriptor line) : guard_(guard), line_(std::move(line)) {}
  Status begin(const FileDescriptor& starter, const std::string& name,
               const ProcessOptions& options);
  void take_report(int flags);

  pid_t guard_;
  pid_t program_ = -1;
  FileDescriptor line_;  // to the guard: words go there, reports come back
  std::optional<End> end_;
};

/// Two ends of a way for bytes, both above the standard descriptors.
struct Ends {
  FileDescriptor first;
  FileDescriptor second;
};

/// What is written to `second` is read from `first`.
Result<Ends> make_pipe();

/// The same file, above the standard descriptors.
FileDescriptor duplicate_above_standard(int fd);

}  // namespace fleetfit::core
