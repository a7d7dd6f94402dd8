#include "fleetfit/tune/training_energy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "fleetfit/measure/conditions.h"

namespace fleetfit::tune {
namespace {

/// CPU time that everything on the machine has used between the two.
double busy_seconds(const measure::SystemState& before, const measure::SystemState& after) {
  const auto ticks = (after.all_ticks - after.idle_ticks - after.steal_ticks) -
                     (before.all_ticks - before.idle_ticks - before.steal_ticks);
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

struct TrainingMeter::State {
  std::filesystem::path root;
  double watts_per_core = 0;
  std::unique_ptr<measure::EnergyMeter> sensor;
  bool started = false;
  measure::SystemState before = {};

  TrainingEnergy modelled(double cpu_seconds) const {
    return {
        .joules = watts_per_core * cpu_seconds,
        .source = measure::EnergySource::modelled,
        .meter = fmt::format("{:g} W of each busy core, which is an assumption", watts_per_core)};
  }
};

TrainingMeter::TrainingMeter(const core::Clock& clock, const TrainingEnergyOptions& options)
    : state_(std::make_unique<State>()) {
  state_->root = options.root;
  state_->watts_per_core = options.watts_per_core;
  state_->sensor = measure::open_energy_meter(clock, {.root = options.root}).meter;
}

TrainingMeter::TrainingMeter(TrainingMeter&&) noexcept = default;
TrainingMeter& TrainingMeter::operator=(TrainingMeter&&) noexcept = default;
TrainingMeter::~TrainingMeter() = default;

void TrainingMeter::start() {
  state_->started = state_->sensor != nullptr && state_->sensor->start().has_value();
  state_->before = measure::read_system_state(state_->root);
}

TrainingEnergy TrainingMeter::stop(double cpu_seconds) {
  if (!std::exchange(state_->started, false)) return state_->modelled(cpu_seconds);
  const auto taken_mj = state_->sensor->stop();
  const double busy_s = busy_seconds(state_->before, measure::read_system_state(state_->root));
  if (!taken_mj || busy_s <= 0) return state_->modelled(cpu_seconds);
  return {.joules = *taken_mj / 1000 * std::min(1.0, cpu_seconds / busy_s),
          .source = measure::EnergySource::measured,
          .meter = state_->sensor->name()};
}

}  // namespace fleetfit::tune
