#pragma once

#include <Eigen/Dense>
#include <span>
#include <vector>

namespace fleetfit::learned {

/// How much networks have in common, judged by their features alone.
class NetworkKinship {
 public:
  /// `features` has a row for each known network.
  NetworkKinship(const std::vector<std::vector<double>>& features, double length, double nugget);

  /// Between 0 and 1 for each two of the known networks.
  const Eigen::MatrixXd& correlations() const { return correlations_; }

  /// A network as a weighted sum of known ones (of logarithms of latencies): weights add up to 1,
  /// and to the network's own size and int8 share where the known ones allow it.
  struct Composition {
    Eigen::VectorXd weights;
    double rest =
        0;  ///< variance that is left, relative to that of networks which are like no other
  };
  Composition compose(std::span<const double> network) const;

 private:
  Eigen::VectorXd scaled(std::span<const double> network) const;
  Eigen::VectorXd trend_of(std::span<const double> network) const;

  double length_;
  double nugget_;
  Eigen::VectorXd mean_;
  Eigen::VectorXd inverse_spread_;
  Eigen::MatrixXd networks_;  // standardised, a row for each
  Eigen::MatrixXd trends_;    // what all devices agree on: a constant, the sizes
  Eigen::MatrixXd correlations_;
  Eigen::MatrixXd inverse_;  // of the correlations with the nugget
  Eigen::MatrixXd trend_inverse_;
};

}  // namespace fleetfit::learned
