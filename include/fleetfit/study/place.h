#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"
#include "fleetfit/store/study_store.h"
#include "fleetfit/tune/history.h"
#include "fleetfit/tune/study.h"

namespace fleetfit::study {

/// How networks are run best on the devices of a study. Safe to use from many threads.
class InferenceTuner {
 public:
  virtual ~InferenceTuner() = default;

  /// The identity of the network in a model file: the same for the same operators and shapes,
  /// whatever the weights.
  virtual Result<std::string> structure_of(const std::filesystem::path& model) = 0;

  /// The best way to run it on each device, in the study's order: out of the historical data base,
  /// or found now and kept there. Fails with `cancelled`, with `io` if the store refuses, and
  /// otherwise if the network cannot be run on one of the devices.
  virtual Result<std::vector<tune::Inference>> tune(const std::string& structure,
                                                    const std::filesystem::path& model,
                                                    const std::stop_token& stop) = 0;
};

/// What studies work with. Store and clock are borrowed.
struct StudyPlace {
  store::StudyStore& studies;
  const core::Clock& clock;
  /// Makes the tuner for a study, which is borrowed. Empty: no inference is tuned.
  std::function<std::unique_ptr<InferenceTuner>(const tune::Study&)> inference = {};
};

}  // namespace fleetfit::study
