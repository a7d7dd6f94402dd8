#pragma once

#include <atomic>

#include "fleetfit/core/clock.h"

namespace fleetfit::core {

/// A clock that stands still until the test moves it. Its date starts at 1970.
class FakeClock final : public Clock {
 public:
  std::chrono::nanoseconds now() const override { return std::chrono::nanoseconds(nanoseconds_); }
  std::chrono::system_clock::time_point date() const override {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(now()));
  }
  void advance(std::chrono::nanoseconds time) { nanoseconds_ += time.count(); }

 private:
  std::atomic<std::int64_t> nanoseconds_ = 0;
};

}  // namespace fleetfit::core
