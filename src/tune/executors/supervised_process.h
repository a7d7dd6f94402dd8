#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/core/process.h"
#include "fleetfit/core/result.h"

/// A program with a small process between it and us. The one between notices our end, however it
/// comes, and then kills the program with all that it started; the program in turn is killed by the
/// kernel when the one between is. It also adopts what leaves the program's group, so that nothing
/// stays behind and the CPU time of all of it is known.
namespace fleetfit::tune {

struct SupervisedCommand {
  std::vector<std::string> argv = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added, or replacing
  std::vector<int> cores = {};                                        ///< empty: any
  std::optional<std::int64_t> memory_bytes = std::nullopt;
  int lock = -1;  ///< a descriptor that stays open in it and whatever it starts
};

struct SupervisedEnd {
  core::ExitStatus status = {};
  std::string start_error = {};  ///< why it could not be started; empty if it could
  bool is_known = false;         ///< false: the process between was killed, and the program with it
  double cpu_s = 0;              ///< of it and all that it started
};

/// Belongs to one thread. Destroying it kills the program.
class SupervisedProcess {
 public:
  static Result<SupervisedProcess> start(const SupervisedCommand& command);

  SupervisedProcess(SupervisedProcess&&) noexcept;
  SupervisedProcess& operator=(SupervisedProcess&&) noexcept = delete;
  ~SupervisedProcess();

  /// Descriptors that do not block: its stdout, its stderr, and one that becomes readable when it
  /// has ended.
  int output() const;
  int errors() const;
  int end_signal() const;

  /// The id of its process group; 0 if it could not be started.
  int group() const;

  /// SIGTERM for its group.
  void ask_to_end();
  /// SIGKILL for its group.
  void kill();

  /// Waits until it and all that it started are gone.
  SupervisedEnd collect();

 private:
  struct State;
  explicit SupervisedProcess(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace fleetfit::tune
