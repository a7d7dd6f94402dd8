#pragma once

#include <chrono>

namespace fleetfit::core {

/// The time. Comes in by reference wherever time matters, so that tests can set it. Safe to use
/// from many threads.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Time since some fixed moment; never goes back. For durations.
  virtual std::chrono::nanoseconds now() const = 0;

  /// The date and time of day. For records; may jump.
  virtual std::chrono::system_clock::time_point date() const = 0;
};

/// The machine's clock.
class SystemClock final : public Clock {
 public:
  std::chrono::nanoseconds now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
  std::chrono::system_clock::time_point date() const override {
    return std::chrono::system_clock::now();
  }
};

}  // namespace fleetfit::core
