#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/learned/device_inputs.h"
#include "fleetfit/learned/samples.h"

namespace fleetfit::learned {

/// A row for each device.
Eigen::MatrixXd inputs_of(std::span<const DeviceVector> devices);

/// What designs cost on a device, linear in the device's inputs: a ridge fit to some devices.
class DeviceRidge {
 public:
  /// `inputs` has a row for each device, `values` a column. `known` are at least two devices;
  /// `ridge` is relative to the variance of their inputs.
  DeviceRidge(const Eigen::MatrixXd& inputs, const Eigen::MatrixXd& values,
              const std::vector<Eigen::Index>& known, double ridge);

  Eigen::VectorXd predict(const Eigen::RowVectorXd& inputs) const;

 private:
  Eigen::RowVectorXd centre_;
  Eigen::MatrixXd apart_;  // inputs of the known devices from their centre
  Eigen::VectorXd mean_;
  Eigen::MatrixXd deviations_;  // of the known devices' values from their mean
  Eigen::LDLT<Eigen::MatrixXd> solver_;
};

/// Designs whose cost is known on all devices and that are looked at: about `most`, evenly
/// chosen.
std::vector<std::size_t> whole_rows(const Samples& samples, std::size_t cost, std::size_t most);

/// ln of their cost without the devices' levels: design x device.
Eigen::MatrixXd log_costs(const Samples& samples, std::size_t cost,
                          std::span<const DeviceVector> devices, std::span<const std::size_t> rows);

}  // namespace fleetfit::learned
