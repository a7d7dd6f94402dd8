#pragma once

#include <csignal>

namespace fleetfit::core {

/// While it lives, writing to a pipe or connection that nobody reads is an error for this thread,
/// not a signal that ends the program: the signal is held back, and taken away at the end.
class SigpipeBlocked {
 public:
  SigpipeBlocked();
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;
  ~SigpipeBlocked();

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace fleetfit::core
