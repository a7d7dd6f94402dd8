#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/learned/device_features.h"

/// Latencies of whole networks on devices that nobody has measured, or only a little.
namespace fleetfit::learned {

/// What network_features gives, in order.
std::span<const std::string_view> network_feature_names();

/// A network as numbers: logarithms of operations, bytes, weights and operators of convolutions,
/// depthwise convolutions, dense layers and the rest, and the share of its arithmetic that is done
/// in int8 (0 to 1), which the graph does not show for all runtimes. Fails as `count_cost` does.
Result<std::vector<double>> network_features(const graph::Graph& graph, double int8_share);

/// Networks that were measured on several devices.
struct NetworkTable {
  std::vector<std::string> networks = {};
  std::vector<std::vector<double>> network_features = {};  ///< for each, all of the same size
  DeviceFeatures devices = {};
  std::vector<std::vector<double>> latency_ms = {};  ///< [device][network]; NaN: not measured
};

struct NetworkLatencyOptions {
  double device_ridge = 5;  ///< strength with which a device's features are kept from explaining
  /// How far the covariance of networks is drawn from that which was seen towards that which their
  /// features suggest, 0 to 1.
  double shrinkage = 0.2;
  /// Distance at which two networks have little in common, in standard deviations of all features.
  double network_length = 3;
  double network_nugget = 0.1;      ///< variance that features do not explain, relative to the rest
  double measurement_error = 0.03;  ///< of the logarithm of a measured latency
  int rounds = 8;                   ///< of filling in what was not measured
};

struct NetworkReference {
  std::size_t network = 0;  ///< one of those that the model knows
  double latency_ms = 0;
};

/// With the range in which a measurement lies nine times out of ten.
struct NetworkPrediction {
  double latency_ms = 0;
  double low_ms = 0;
  double high_ms = 0;
};

/// Logarithms of the latencies of all networks on a device are normally distributed around what
/// its features tell (a linear function), with a covariance that says which networks go together.
/// Measured networks narrow that down by the rules of probability: with none of them there is a
/// prediction from the features alone, and each one more improves it. A network that nobody has
/// measured anywhere is predicted from those like it. Immutable; safe to use from many threads.
class NetworkLatencyModel {
 public:
  /// Fails with `invalid_input`, saying what, if there are fewer than five devices or three
  /// networks, if sizes do not go together, or if a device, network or feature has no number.
  static Result<NetworkLatencyModel> fit(const NetworkTable& table,
                                         const NetworkLatencyOptions& options = {});

  NetworkLatencyModel(NetworkLatencyModel&&) noexcept;
  NetworkLatencyModel& operator=(NetworkLatencyModel&&) noexcept;
  ~NetworkLatencyModel();

  std::span<const std::string> networks() const;

  /// Networks to measure on a new device, the most telling first.
  std::vector<std::size_t> best_references(std::size_t count) const;

  /// All known networks on a device of a file. Fails with `invalid_input` if the file lacks a
  /// column or the device all features, and on a reference that does not exist, stands there twice
  /// or is not positive.
  Result<std::vector<NetworkPrediction>> predict(
      const DeviceFeatures& devices, std::size_t device,
      std::span<const NetworkReference> references = {}) const;

  /// A network that is not among the known ones, by its features.
  Result<NetworkPrediction> predict_unseen(const DeviceFeatures& devices, std::size_t device,
                                           std::span<const NetworkReference> references,
                                           std::span<const double> network) const;

 private:
  struct Parts;
  struct Posterior;
  explicit NetworkLatencyModel(std::unique_ptr<const Parts> parts);
  Result<Posterior> posterior(const DeviceFeatures& devices, std::size_t device,
                              std::span<const NetworkReference> references) const;

  std::unique_ptr<const Parts> parts_;
};

}  // namespace fleetfit::learned
