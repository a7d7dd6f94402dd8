#pragma once

#include "fleetfit/train/training.h"

namespace fleetfit::train {

/// What a training is done with in a test.
class Surroundings {
 public:
  explicit Surroundings(int threads = 1)
      : pool_(threads), progress_(core::make_silent_progress()) {}

  TrainingContext context(std::stop_token stop = {}) {
    return {.pool = pool_, .clock = clock_, .progress = *progress_, .stop = std::move(stop)};
  }

 private:
  core::ThreadPool pool_;
  core::SystemClock clock_;
  std::unique_ptr<core::Progress> progress_;
};

}  // namespace fleetfit::train
