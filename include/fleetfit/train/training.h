#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/names.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/thread_pool.h"

/// Everything that learns by gradients.
namespace fleetfit::train {

/// The same seed gives the same networks, whatever the number of threads, as long as no budget or
/// interruption cuts training short.
struct TrainingOptions {
  std::uint64_t seed = 1;
  int trials = 12;  ///< settings that are tried, drawn at random
  /// Of a network; keeps files small and quick to read. Settings that would have more are not
  /// tried.
  std::size_t max_weights = 100'000;
  int max_epochs = 400;  ///< of one training
  int patience = 50;     ///< epochs without a better validation error after which training ends
  std::optional<std::chrono::nanoseconds> budget =
      {};  ///< for all of it; none: as long as it takes
};

/// What training is done with. Borrows everything.
struct TrainingContext {
  core::ThreadPool& pool;
  const core::Clock& clock;
  core::Progress& progress;
  std::stop_token stop = {};  ///< ends training soon; the best so far is kept
};

/// Why a training ended.
enum class Ended : std::uint8_t {
  patience,  ///< no more progress
  epochs,    ///< as many epochs as were allowed
  early,     ///< the budget was used up, or somebody asked to stop
};

/// "patience", "epochs", "early".
core::Names names_of(Ended);
using core::to_string;

}  // namespace fleetfit::train
