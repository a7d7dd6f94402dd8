#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::adapt {

/// Latencies of any number of requests in bounded memory: all of them as long as there is room,
/// after that a random sample in which each has the same chance to be.
class LatencySample {
 public:
  void add(double ms) {
    ++seen_;
    if (sample_.size() < kRoom) {
      sample_.push_back(ms);
    } else if (const auto place = random_.below(seen_); place < kRoom) {
      sample_[static_cast<std::size_t>(place)] = ms;
    }
  }

  /// 0 if there is none.
  double quantile(double share) const { return core::quantile(sample_, share).value_or(0); }

 private:
  static constexpr std::size_t kRoom = std::size_t{1} << 16;

  std::vector<double> sample_;
  std::uint64_t seen_ = 0;
  core::Random random_{1};
};

}  // namespace fleetfit::adapt
