#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "fleetfit/core/random.h"

namespace fleetfit::agent {

/// How long to leave a server alone that did not answer: a second, then twice as long each time up
/// to a minute, and each time a random part of it off, so that a fleet does not come back at once.
class Backoff {
 public:
  explicit Backoff(std::uint64_t seed) : random_(seed) {}

  /// `least_s` is what the server has asked for.
  void failed(std::chrono::nanoseconds now, double least_s) {
    constexpr double kMostS = 60;
    constexpr int kMostDoublings = 10;
    const double wait_s = std::min(kMostS, std::ldexp(1.0, std::min(failures_, kMostDoublings)));
    ++failures_;
    const double jittered_s = std::max(least_s, wait_s * random_.uniform(0.5, 1.0));
    until_ = now + std::chrono::nanoseconds(std::llround(jittered_s * 1e9));
  }
  void succeeded() {
    failures_ = 0;
    until_ = {};
  }
  std::chrono::nanoseconds until() const { return until_; }
  int failures() const { return failures_; }

 private:
  core::Random random_;
  int failures_ = 0;
  std::chrono::nanoseconds until_{};
};

}  // namespace fleetfit::agent
