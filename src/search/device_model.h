#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/core/cholesky.h"
#include "fleetfit/space/space.h"

namespace fleetfit::search {

/// What a design will cost on a device, from what it costs on a proxy and a few measurements. The
/// logarithm of device over proxy is a Gaussian process with four parts: a common factor, a drift
/// with the proxy's cost, a price of each choice (a kind of operator that the device is good or bad
/// at), and a part that designs share the more of, the more choices they have in common. Parts and
/// noise are as large as makes the measurements most likely.
class DeviceModel {
 public:
  explicit DeviceModel(const space::Space& space);

  /// Both costs are positive.
  void add(space::Design design, double proxy, double measured);

  std::size_t size() const { return logs_.size(); }

  /// Takes what was added into account. There must be something.
  void fit();

  /// The logarithm of the cost on the device is normal with this mean and deviation.
  struct Prediction {
    double mean = 0;
    double deviation = 0;
  };
  Prediction predict(space::Design design, double proxy) const;

  /// The probability that the cost is at most `limit`.
  static double chance_below(const Prediction& predicted, double limit);

 private:
  struct Settings {
    double shared = 0.2;
    double noise = 0.03;
  };

  /// What the kernel looks at.
  struct Point {
    space::Design design;
    double log_proxy;
    std::span<const double> shares;
  };

  std::vector<double> shares_of(space::Design design) const;
  Point point(std::size_t i) const;
  double kernel(const Point& a, const Point& b) const;
  double try_settings(const Settings& settings);

  const space::Space* space_;
  std::vector<std::size_t> first_kind_;  // of each gene: the place of its choice 0 in shares
  std::size_t kinds_ = 0;
  space::Population designs_;
  std::vector<double> shares_;  // of the measured designs, row by row
  std::vector<double> logs_;    // of the proxy's costs
  std::vector<double> ratios_;  // logarithms of device over proxy
  double expected_equal_ = 0;   // genes that two random designs have in common
  double middle_log_ = 0;
  double middle_ratio_ = 0;
  Settings settings_;
  core::Cholesky factor_;         // of the kernel matrix
  std::vector<double> whitened_;  // ratios without their middle, solved by the factor
};

}  // namespace fleetfit::search
