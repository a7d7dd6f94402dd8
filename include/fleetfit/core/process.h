#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"

/// Other programs, started without a shell. Each gets a process group of its own, so that what it
/// starts is ended with it. None of our files stay open in it, no zombie stays behind, and writing
/// to a dead one is an error, not a signal.
///
/// A small process stands between us and the program, its guard. It notices our end, however that
/// comes, and then kills the program; should the guard be killed, the kernel kills the program. The
/// guard is a fork of this process, so starting a program takes longer the more memory we have.
namespace fleetfit::core {

/// How a process ended: by itself with a code, or by a signal.
struct ExitStatus {
  int code = 0;    ///< as given to exit(); 0 if a signal ended it
  int signal = 0;  ///< 0 if it ended by itself

  bool succeeded() const { return code == 0 && signal == 0; }
  bool operator==(const ExitStatus&) const = default;
};

/// "exit status 3" or "signal 9 (Killed)".
std::string to_string(const ExitStatus& status);

enum class ErrorOutput {
  capture,  ///< kept, up to a limit, or given to `on_errors`
  inherit,  ///< goes where ours goes
  discard,
};

/// What is killed once the program has ended.
enum class Leftovers {
  group,  ///< what is still in its process group; a daemon may go on
  all,    ///< whatever it started
};

struct ProcessOptions {
  std::vector<std::pair<std::string, std::string>> environment =
      {};                                     ///< added to ours, or replacing
  std::filesystem::path working_folder = {};  ///< ours if empty
  ErrorOutput error_output = ErrorOutput::capture;
  std::size_t max_line_bytes = std::size_t{64} << 20;   ///< longest line that `read_line` takes
  std::size_t max_error_bytes = std::size_t{64} << 10;  ///< how much of the end of stderr is kept
  std::chrono::milliseconds grace{2000};                ///< from SIGTERM to SIGKILL
  std::chrono::milliseconds orphan_grace{0};            ///< from our own end to SIGKILL
  Leftovers leftovers = Leftovers::group;
  std::vector<int> cores = {};  ///< it runs on these, where the machine allows that; empty: any
  int keep_open = -1;  ///< a descriptor of ours that stays open in it and whatever it starts

  /// Called with the process's id before the program begins: limits that are set now hold from its
  /// first instruction. If it fails, the program does not begin.
  std::function<Status(int pid)> prepare = {};

  /// Get what it writes to stdout and stderr as it comes, instead of `read_line` and
  /// `error_output`. Called by those functions of `Process` that wait.
  std::function<void(std::string_view)> on_output = {};
  std::function<void(std::string_view)> on_errors = {};
};

struct RunOptions;
struct ProcessOutput;

/// A running program with its stdin and stdout in our hands. Belongs to one thread at a time.
/// Destroying it stops it.
class Process {
 public:
  /// `argv[0]` is a path, or a name looked up in PATH. Fails with `not_found` if there is no such
  /// program or working folder, with `io` if it cannot be started, with `invalid_input` if `argv`
  /// is empty, and with what `prepare` fails with.
  static Result<Process> start(std::vector<std::string> argv, const ProcessOptions& options = {});

  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();

  /// Also the id of its group.
  int pid() const;

  /// Writes all of `text` to its stdin, meanwhile keeping what it says. Fails with `device_failed`
  /// if it has ended or closed its stdin, or does not take the text in time, with `cancelled` if it
  /// is to stop.
  Status write(std::string_view text, std::chrono::milliseconds timeout,
               const std::stop_token& stop = {});

  /// Ends its input.
  void close_stdin();

  /// The next line of its stdout without the line end; a last line may lack one. Nothing if the
  /// output has ended, which includes that the process has ended while others hold its output open.
  /// Fails with `device_failed` if no line came in time or the line is too long, with `cancelled`
  /// if it is to stop.
  Result<std::optional<std::string>> read_line(std::chrono::milliseconds timeout,
                                               const std::stop_token& stop = {});

  /// Waits until it has written something, has ended or is to be stopped, and takes in what it has
  /// written. Says how it ended once all is taken in.
  std::optional<ExitStatus> listen(std::chrono::milliseconds timeout,
                                   const std::stop_token& stop = {});

  /// The end of what it wrote to stderr so far, if captured.
  const std::string& error_output() const;

  /// The memory that it and what it started have now; 0 once it has ended.
  std::int64_t memory_bytes() const;

  /// How it ended, if it ended in time and before it was to stop.
  std::optional<ExitStatus> wait(std::chrono::milliseconds timeout,
                                 const std::stop_token& stop = {});

  /// SIGTERM for its group. Any thread may ask. Harmless if it has ended.
  void ask_to_end();

  /// SIGKILL for its group. Harmless if it has ended.
  void kill();

  /// Ends it and what it started: SIGTERM, and after the grace time SIGKILL. Harmless if it has
  /// ended.
  ExitStatus stop();

  /// The CPU time of it and what it started, once it has ended.
  double cpu_s() const;

  /// Whether its guard was killed, and it with that: how it would have ended is not known.
  bool was_guard_killed() const;

 private:
  friend Result<ProcessOutput> run(std::vector<std::string> argv, const RunOptions& options);

  struct State;
  explicit Process(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

struct RunOptions {
  ProcessOptions process = {};
  std::string input = {};  ///< given to its stdin, which is then closed
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;  ///< of the whole run
  std::size_t max_output_bytes = std::size_t{64} << 20;  ///< of stdout; what comes after is dropped
  std::stop_token stop = {};  ///< ends the run with the error `cancelled`
};

struct ProcessOutput {
  ExitStatus status = {};
  std::string output = {};        ///< its stdout
  std::string error_output = {};  ///< the end of its stderr
  bool timed_out = false;         ///< it was stopped because the time was over
  bool truncated = false;         ///< it said more than `max_output_bytes`

  bool succeeded() const { return status.succeeded() && !timed_out; }
};

/// Runs a program to its end. A program that fails, is killed or runs out of time is a value, not
/// an error; what can fail is starting it, as in `Process::start`, and cancellation.
Result<ProcessOutput> run(std::vector<std::string> argv, const RunOptions& options = {});

}  // namespace fleetfit::core
