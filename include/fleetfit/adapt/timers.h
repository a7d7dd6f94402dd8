#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/measure/runtime.h"

/// Ways to time networks.
namespace fleetfit::adapt {

/// How each network is timed.
struct TimingOptions {
  double quantile = 0.5;  ///< of the runs: 0.5 is the median, 0.95 and 0.99 are tails
  int rounds = 7;         ///< in which networks take turns; a disturbed one does not count
  double round_ms = 12;   ///< how long a network runs in a round
};

struct EngineTimerOptions {
  int threads = 1;
  engine::Library library = engine::Library::automatic;
  engine::Choices known = {};  ///< answers of earlier preparations on this CPU
  TimingOptions timing = {};
  std::size_t program_bytes = std::size_t{256} << 20;  ///< about the most for networks side by side
};

/// The engine in this process. Kernels are chosen once for each shape.
class EngineTimer : public NetworkTimer {
 public:
  /// Kernels that were found fastest so far, without those known before.
  virtual const engine::Choices& new_choices() const = 0;
};
std::unique_ptr<EngineTimer> make_engine_timer(EngineTimerOptions options = {});

/// A runtime, which is borrowed; networks are written to files for it.
Result<std::unique_ptr<NetworkTimer>> make_runtime_timer(measure::Runtime& runtime,
                                                         measure::LoadOptions load,
                                                         const TimingOptions& timing = {});

}  // namespace fleetfit::adapt
