#include "fleetfit/core/interrupt.h"

#include <pthread.h>

#include <ctime>

namespace fleetfit::core {

Interrupt::Interrupt() {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  watcher_ = std::jthread([this](const std::stop_token& end) { watch(end); });
}

Interrupt::~Interrupt() {
  watcher_.request_stop();
  watcher_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::watch(const std::stop_token& end) {
  constexpr timespec kTick{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (!end.stop_requested()) {
    const int signal = ::sigtimedwait(&signals_, nullptr, &kTick);
    if (signal < 0) continue;
    if (!stop_.request_stop()) {
      // Asked twice: ends the way it would have ended at once.
      static_cast<void>(std::signal(signal, SIG_DFL));
      ::pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
      static_cast<void>(std::raise(signal));
    }
  }
}

}  // namespace fleetfit::core
