#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace fleetfit::core {

/// While it lives, SIGINT and SIGTERM ask to stop instead of ending the program; a second one ends
/// it. To be created before the program starts threads, as these inherit that they do not see the
/// signals. Threads that libraries started before main are dealt with.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void watch(const std::stop_token& end);

  sigset_t signals_{};
  sigset_t before_{};
  struct sigaction interrupt_before_{};
  struct sigaction terminate_before_{};
  std::stop_source stop_;
  std::jthread watcher_;
};

}  // namespace fleetfit::core
