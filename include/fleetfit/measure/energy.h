#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"
#include "fleetfit/records/measurement.h"

/// Energy that a piece of work takes. A number always says whether it was measured by a sensor or
/// modelled; where neither is possible there is none.
namespace fleetfit::measure {

using core::to_string;
using records::Energy;
using records::EnergySource;

/// Tells the energy between `start` and `stop`. Sensors see the whole machine, idle power included;
/// a model sees the CPU time of one process. Belongs to one thread at a time.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;

  virtual std::string name() const = 0;
  virtual EnergySource source() const = 0;

  virtual Status start() = 0;

  /// Millijoules since `start`. Fails if it was not started, or if the sensor cannot be read or
  /// stopped telling (a battery that is being charged).
  virtual Result<double> stop() = 0;
};

/// Power of a core at work, by cluster and frequency.
struct PowerPoint {
  int cluster = 0;  ///< its first core that was measured, as in the table
  std::int64_t frequency_khz = 0;
  double power_mw = 0;

  bool operator==(const PowerPoint&) const = default;
};

struct PowerTable {
  std::string soc = {};
  std::string device = {};              ///< where it was measured; may be ""
  std::vector<PowerPoint> points = {};  ///< by cluster, then by frequency

  /// Interpolated between the frequencies of the table; at those beyond, that of the nearest.
  /// Fails with `not_found`, naming the clusters that there are.
  Result<double> power_mw(int cluster, std::int64_t frequency_khz) const;
};

struct PowerTableChoice {
  std::string soc = {};  ///< "" if the table holds but one
  std::string run = "main";
};

/// Reads a table with the columns soc, run, device, cpu, freq_khz and power_mw (those of
/// kdrag0n/freqbench). Fails with `not_found` if it has no such SoC or run, with `invalid_input`,
/// naming the line, on what is no number or no power.
Result<PowerTable> read_power_table(const std::filesystem::path& path,
                                    const PowerTableChoice& choice = {});

/// What a model of energy needs to know.
struct PowerModel {
  PowerTable table = {};
  int cluster = 0;                 ///< where the work runs
  std::int64_t frequency_khz = 0;  ///< 0 = the cluster's highest in the table
};

/// For who has to compare energies on a machine without a sensor and without a table, as tuning
/// has: every busy core takes so much. An assumption: it orders pieces of work by their CPU time,
/// and says nothing of what the machine really takes.
inline constexpr double kAssumedCoreWatts = 5;
PowerModel assumed_power(double watts_per_core = kAssumedCoreWatts);

struct EnergyOptions {
  std::filesystem::path root = "/";                ///< where `sys` and `proc` are
  std::chrono::milliseconds sample_period{5};      ///< of sensors that tell power, not energy
  std::optional<PowerModel> model = std::nullopt;  ///< for machines without a sensor
  int pid = 0;  ///< whose CPU time a model counts; 0 = this process and its finished children
};

struct OpenedMeter {
  std::unique_ptr<EnergyMeter> meter = nullptr;  ///< none if there is no honest way
  std::string reason = {};  ///< which one and why, or what is missing, in one sentence
};

/// The best meter of this machine: RAPL, then hwmon sensors of the processor or the board, then a
/// battery that is being discharged, then the model if one is given. Without any of them there is
/// none: fleetfit knows no typical power of an unknown CPU and invents none. The clock must outlive
/// the meter.
OpenedMeter open_energy_meter(const core::Clock& clock, const EnergyOptions& options = {});

/// The meters one by one. Each fails with `not_found` if the machine has no such sensor, with `io`
/// if it may not be read (RAPL is for root alone), with `unsupported` if a battery is not being
/// discharged.
Result<std::unique_ptr<EnergyMeter>> open_rapl(const EnergyOptions& options = {});
Result<std::unique_ptr<EnergyMeter>> open_hwmon(const core::Clock& clock,
                                                const EnergyOptions& options = {});
Result<std::unique_ptr<EnergyMeter>> open_battery(const core::Clock& clock,
                                                  const EnergyOptions& options = {});
Result<std::unique_ptr<EnergyMeter>> open_modelled(const PowerModel& model,
                                                   const EnergyOptions& options = {});

}  // namespace fleetfit::measure
