#include "fleetfit/core/sleep.h"

#include <gtest/gtest.h>

#include <thread>

namespace fleetfit::core {
namespace {

using namespace std::chrono_literals;

TEST(SleepUnlessStopped, SaysWhetherItWasStopped) {
  std::stop_source stop;
  EXPECT_TRUE(sleep_unless_stopped(1ms, stop.get_token()));
  EXPECT_TRUE(sleep_unless_stopped(1ms, {}));
  const std::jthread user([&] { stop.request_stop(); });
  EXPECT_FALSE(sleep_unless_stopped(1h, stop.get_token()));
}

TEST(GrowingPause, DoublesUpToTheLongest) {
  GrowingPause pause(5ms, 12ms);
  EXPECT_EQ(pause.take(), 5ms);
  EXPECT_EQ(pause.take(), 10ms);
  EXPECT_EQ(pause.next(), 12ms);
  EXPECT_EQ(pause.take(), 12ms);
  EXPECT_EQ(pause.take(), 12ms);
}

TEST(GrowingPause, BeginsAgainWhenSomethingHappened) {
  GrowingPause pause(5ms, 100ms);
  pause.take();
  pause.take();
  pause.something_happened();
  EXPECT_EQ(pause.take(), 5ms);
}

}  // namespace
}  // namespace fleetfit::core
