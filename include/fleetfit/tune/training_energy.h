#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "fleetfit/core/clock.h"
#include "fleetfit/measure/energy.h"

/// What training takes of energy.
namespace fleetfit::tune {

struct TrainingEnergy {
  double joules = 0;
  measure::EnergySource source = measure::EnergySource::modelled;
  std::string meter = {};  ///< which one
};

struct TrainingEnergyOptions {
  std::filesystem::path root = "/";  ///< where `sys` and `proc` are
  double watts_per_core = measure::kAssumedCoreWatts;
};

/// Tells the energy of one trial while others may run beside it. Sensors see the whole machine: the
/// trial's part is its share of the CPU time that all have used, idle power included. Without a
/// sensor it is modelled: `watts_per_core` for each second of CPU time. Belongs to one thread.
class TrainingMeter {
 public:
  /// The clock must outlive it.
  explicit TrainingMeter(const core::Clock& clock, const TrainingEnergyOptions& options = {});
  TrainingMeter(TrainingMeter&&) noexcept;
  TrainingMeter& operator=(TrainingMeter&&) noexcept;
  ~TrainingMeter();

  /// When the trial's process starts; may be repeated.
  void start();

  /// When it has ended, with the CPU time of it and its children. A sensor that cannot be read any
  /// more, and a meter that was not started, give the model's answer.
  TrainingEnergy stop(double cpu_seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetfit::tune
