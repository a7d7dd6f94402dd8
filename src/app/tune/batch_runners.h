#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "fleetfit/core/clock.h"
#include "fleetfit/measure/runtime.h"

namespace fleetfit::app {

/// A network that is loaded once for each of some batches, ready to run any number of samples.
class BatchRunners {
 public:
  /// The model for batches of so many samples is loaded in this runtime.
  void add(std::int64_t batch, std::unique_ptr<measure::Runtime> runtime) {
    by_batch_[batch] = std::move(runtime);
  }

  /// Runs some of each batch, so that what is slow the first time is over.
  Status warm_up(const core::Clock& clock) const;

  /// With the smallest batch that holds them; there has to be one.
  Status run(std::int64_t samples) const {
    return by_batch_.lower_bound(samples)->second->run(1, false).map([](const auto&) {});
  }

 private:
  std::map<std::int64_t, std::unique_ptr<measure::Runtime>> by_batch_;
};

}  // namespace fleetfit::app
