#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "fleetfit/core/clock.h"

/// How long work says how far it is. Work creates a `ProgressTask`; what becomes of its events is
/// the sink's business: a bar on the terminal, JSON lines for another program, nothing.
namespace fleetfit::core {

enum class ProgressKind { started, advanced, message, finished };

/// The kind's name as written in JSON.
std::string_view to_string(ProgressKind kind);

struct ProgressEvent {
  ProgressKind kind = ProgressKind::started;
  std::uint64_t task = 0;      ///< different for each task of a sink
  std::string_view name = {};  ///< what is done, e.g. "measure"
  std::string_view unit = {};  ///< what is counted, e.g. "designs"
  std::uint64_t done = 0;      ///< units so far
  std::uint64_t total = 0;     ///< units in all; 0 if unknown
  std::string_view text = {};  ///< of a message
};

/// Receives events, from many threads at once. The texts of an event are valid during the call
/// only.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void receive(const ProgressEvent& event) = 0;

 private:
  friend class ProgressTask;
  std::atomic<std::uint64_t> tasks_ = 0;
};

struct ProgressTaskOptions {
  std::string name = {};    ///< what is done, e.g. "measure"
  std::uint64_t total = 0;  ///< 0 if unknown
  std::string unit = {};    ///< what is counted, e.g. "designs"
};

/// A piece of work that reports to a sink: started when created, finished when destroyed. The sink
/// must outlive it.
class ProgressTask {
 public:
  ProgressTask(Progress& sink, ProgressTaskOptions options);
  ProgressTask(const ProgressTask&) = delete;
  ProgressTask& operator=(const ProgressTask&) = delete;
  ~ProgressTask();

  /// Safe to call from many threads.
  void advance(std::uint64_t units = 1);

  /// A line for the user to see. Safe to call from many threads.
  void message(std::string_view text);

 private:
  void send(ProgressKind kind, std::uint64_t done, std::string_view text = {});

  Progress& sink_;
  ProgressTaskOptions options_;
  std::uint64_t id_;
  std::atomic<std::uint64_t> done_ = 0;
};

/// A sink that does nothing.
std::unique_ptr<Progress> make_silent_progress();

struct TerminalProgressOptions {
  int fd = 2;          ///< the standard error stream
  bool quiet = false;  ///< show nothing
};

/// A bar with count, rate and remaining time on a terminal. Silent if `fd` is not a terminal. The
/// clock must outlive it.
std::unique_ptr<Progress> make_terminal_progress(const Clock& clock,
                                                 const TerminalProgressOptions& options = {});

struct ProgressBarOptions {
  std::function<void(std::string_view)>
      write;       ///< puts bytes on the terminal; never called twice at once
  int width = 80;  ///< of the terminal, in characters
};

/// The bar that `make_terminal_progress` puts on a terminal. Shows the task that was started last,
/// redraws at most ten times a second, puts messages above the bar, and clears its line when no
/// task is left.
std::unique_ptr<Progress> make_progress_bar(const Clock& clock, ProgressBarOptions options);

struct ProgressForPeopleOptions {
  bool quiet = false;  ///< show nothing
};

/// What people see on the standard error stream: a bar if it is a terminal, else the messages
/// alone, a line each. The clock must outlive it.
std::unique_ptr<Progress> make_progress_for_people(const Clock& clock,
                                                   const ProgressForPeopleOptions& options);

}  // namespace fleetfit::core
