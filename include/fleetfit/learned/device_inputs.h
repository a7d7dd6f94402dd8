#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::core {
struct Fields;
}

/// What the networks see of a device.
namespace fleetfit::learned {

/// A feature of devices, and how its numbers become what the networks take.
struct InputColumn {
  std::string name = {};
  bool is_reference = false;  ///< the latency of a reference design, in ms
  bool is_logarithm = false;  ///< ln of the feature is taken first; references always are
  double middle = 0;          ///< mean over the known devices
  /// What is taken away and divided by then; of references after the device's level was taken away.
  double mean = 0;
  double scale = 1;
};
core::Fields fields_of(const InputColumn*);

/// A device as the networks take it.
struct DeviceVector {
  std::vector<float> inputs = {};  ///< one for each feature
  /// Mean of ln of the reference latencies: costs are relative to it. 0 without references.
  double level = 0;
  /// How far it is from the known devices: the variance that its place adds to a linear fit to
  /// them, in units of that fit's errors. About 0.1 to 1 for devices like the known ones.
  double distance = 0;
  std::size_t missing = 0;  ///< features that were filled in
};

/// Immutable; safe to use from many threads.
class DeviceInputs {
 public:
  struct Parts {
    std::vector<InputColumn> columns = {};
    /// Covariance of the features, after ln and before level and scale: fills in what is missing.
    std::vector<double> covariance = {};
    /// Inverse of (sum of inputs x inputs' over known devices + ridge): gives the distance.
    std::vector<double> familiarity = {};
    double usual_distance = 1;  ///< nine of ten known devices are nearer to the others
  };

  /// Fails with `invalid_input`, naming the part.
  static Result<DeviceInputs> make(Parts parts);

  std::size_t size() const { return parts_.columns.size(); }
  const Parts& parts() const { return parts_; }
  bool has_references() const { return references_ > 0; }

  /// `values` has a number for each feature, NaN where it is missing: such are filled in from the
  /// others, as they go together on known devices. Fails with `invalid_input`, naming the feature,
  /// on a number that cannot be, and if nothing says how fast the device is.
  Result<DeviceVector> read(std::span<const double> values) const;

  /// A device with these inputs and this level; there is an input for each feature.
  DeviceVector at(std::vector<float> inputs, double level) const;

 private:
  explicit DeviceInputs(Parts parts);
  Status fill_in(std::span<double> values) const;

  Parts parts_;
  std::size_t references_ = 0;
};
core::Fields fields_of(const DeviceInputs::Parts*);

/// Features of the devices that are learned from, row by row; NaN where one is missing.
struct KnownFeatures {
  std::vector<std::string> names = {};
  std::vector<bool> is_reference = {};
  std::vector<double> values = {};

  std::size_t columns() const { return names.size(); }
  std::size_t devices() const { return names.empty() ? 0 : values.size() / names.size(); }
  std::span<const double> row(std::size_t device) const {
    return std::span(values).subspan(device * names.size(), names.size());
  }
};

/// Learns scales, what goes together, and what is usual. `ridge` is relative to the mean square of
/// a device's inputs. Fails with `invalid_input`, naming the feature, on one that no device has, on
/// a reference latency that is not positive, and on fewer than three devices.
Result<DeviceInputs> fit_device_inputs(const KnownFeatures& known, double ridge);

}  // namespace fleetfit::learned
