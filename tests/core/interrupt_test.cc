#include "fleetfit/core/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace fleetfit::core {
namespace {

using namespace std::chrono_literals;

void expect_stop_after(int signal) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.token().stop_requested());
  ::kill(::getpid(), signal);
  for (int i = 0; i < 1000 && !interrupt.token().stop_requested(); ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(interrupt.token().stop_requested());
}

TEST(Interrupt, AsksToStopWhenASignalComes) {
  expect_stop_after(SIGINT);
  expect_stop_after(SIGTERM);
}

TEST(Interrupt, IsNotKilledByAThreadThatWasThereBefore) {
  // Takes the signal first, as it does not hold it back.
  std::stop_source end;
  std::jthread earlier([token = end.get_token()] {
    while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
  });
  {
    const Interrupt interrupt;
    ::pthread_kill(earlier.native_handle(), SIGINT);
    for (int i = 0; i < 1000 && !interrupt.token().stop_requested(); ++i)
      std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(interrupt.token().stop_requested());
  }
  end.request_stop();
}

}  // namespace
}  // namespace fleetfit::core
