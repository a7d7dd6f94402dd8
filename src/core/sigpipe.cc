#include "fleetfit/core/sigpipe.h"

#include <cerrno>
#include <ctime>

namespace fleetfit::core {

SigpipeBlocked::SigpipeBlocked() {
  sigset_t pending;
  ::sigemptyset(&set_);
  ::sigaddset(&set_, SIGPIPE);
  ::sigpending(&pending);
  was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
  ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

SigpipeBlocked::~SigpipeBlocked() {
  const timespec at_once{};
  while (!was_pending_ && ::sigtimedwait(&set_, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace fleetfit::core
