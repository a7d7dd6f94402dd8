#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/learned/device_inputs.h"
#include "fleetfit/learned/model.h"
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

/// How far an ensemble can be trusted on devices that none of its members has seen.
struct Trust {
  double margin = 3;  ///< times the spread
  Risk risk = {};
  double usual_spread = 0.02;  ///< the median
};

struct RehearsalOptions {
  double ridge = 0.3;
  double noise = 0.015;
  std::span<const double> accuracy = {};  ///< by which designs would be chosen
};

/// Takes each fold of devices in turn as if it were new. An ensemble of linear fits stands for the
/// networks, which would take too long: each is fitted without that fold and without one other. At
/// budgets spread over a device's range it finds which designs would be chosen, and by how many
/// times the ensemble's spread their true costs exceed the predicted ones. The price of risk is the
/// least at which designs chosen with it keep their budgets often enough. Defaults if there are
/// fewer than three folds or too few designs that all devices have.
Trust rehearse(const Samples& samples, std::size_t cost, std::span<const DeviceVector> devices,
               std::span<const std::size_t> folds, const RehearsalOptions& options);

}  // namespace fleetfit::learned
