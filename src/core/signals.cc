#include "fleetfit/core/interrupt.h"

#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX's part is wanted
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "fleetfit/core/sigpipe.h"

namespace fleetfit::core {
namespace {

// Runs in a thread that does not hold the signals back, because a library started it before us:
// from now on it does, and the signal goes to the thread that waits for it.
void pass_on(int signal, siginfo_t* /*info*/, void* context) {
  auto& mask = static_cast<ucontext_t*>(context)->uc_sigmask;
  ::sigaddset(&mask, SIGINT);
  ::sigaddset(&mask, SIGTERM);
  ::kill(::getpid(), signal);
}

}  // namespace

Interrupt::Interrupt() {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  struct sigaction action{};
  action.sa_sigaction = &pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  action.sa_mask = signals_;
  ::sigaction(SIGINT, &action, &interrupt_before_);
  ::sigaction(SIGTERM, &action, &terminate_before_);
  watcher_ = std::jthread([this](const std::stop_token& end) { watch(end); });
}

Interrupt::~Interrupt() {
  watcher_.request_stop();
  watcher_.join();
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
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
