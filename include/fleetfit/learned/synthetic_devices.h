#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/table.h"

namespace fleetfit::learned {

struct SyntheticOptions {
  std::uint64_t seed = 1;
  std::size_t most_parents = 3;  ///< real devices that are mixed; 1 is always among the counts
  /// Standard deviation of the logarithm of the common slow-down, as a share of what it is among
  /// the real devices.
  double scale = 0.5;
  double tilt = 0.7;   ///< most of the operators' own slow-downs, as a share of real devices'
  double noise = 0.7;  ///< most of what is left, likewise
  std::size_t samples = 2000;  ///< rows of the table to learn from, drawn by chance
};

/// A device that nobody has built, between real ones.
struct SyntheticDevice {
  struct Parent {
    std::size_t device = 0;  ///< which of the real ones, in the order that they were given
    double weight = 0;       ///< of all parents together 1
  };
  std::vector<Parent> parents = {};
  double log_scale = 0;
  std::vector<double> tilts = {};  ///< for each feature of the space's encoding "counts"
  double noise = 0;                ///< standard deviation of a latency's logarithm
  std::uint64_t key = 0;           ///< of its noise
};

/// Makes devices by perturbing real ones as real ones differ from each other. The logarithm of a
/// latency is a weighted mean of those of the parents, plus a common slow-down, plus a slow-down
/// for each kind of operator and live operator, plus noise that is the same whenever the same
/// design is asked for. How much operators differ, and the noise, are taken from what is left of
/// each real device's latencies once the other devices that are not much like it have explained
/// them (docs/formats/device_features.md). Immutable; safe to use from many threads; any number of
/// devices, each made from its index alone in some microseconds.
class SyntheticDevices {
 public:
  /// `devices` are columns of the table, which must outlive this object. Fails with
  /// `invalid_input`, naming the table, on fewer than three devices, one that is given twice, or
  /// fewer than 50 rows in which all of them are known.
  static Result<SyntheticDevices> learn(const space::DesignTable& table,
                                        std::span<const std::size_t> devices,
                                        const SyntheticOptions& options = {});

  SyntheticDevices(SyntheticDevices&&) noexcept;
  SyntheticDevices& operator=(SyntheticDevices&&) noexcept;
  ~SyntheticDevices();

  /// The same for the same index, whatever else was asked for.
  SyntheticDevice device(std::uint64_t index) const;

  /// Latencies in ms of designs, given as rows of the table. NaN where a parent's is missing.
  void latencies_ms(const SyntheticDevice& device, std::span<const std::size_t> rows,
                    std::span<double> out) const;

 private:
  struct Parts;
  explicit SyntheticDevices(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts_;
};

}  // namespace fleetfit::learned
