#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/transfer/monotonicity.h"

/// Which devices to know well, so that others can be predicted from them.
namespace fleetfit::transfer {

struct RankedProxy {
  std::string device = {};
  double mean_srcc = 0;  ///< with all other devices
};

/// The device that agrees best with the others first. A single device has nobody to agree with: 0.
std::vector<RankedProxy> rank_proxies(const CorrelationMatrix& matrix);

/// A proxy with the devices that are predicted from it, itself among them.
struct PoolMember {
  std::string proxy = {};
  std::vector<std::string> devices = {};
};

/// Few proxies such that each device agrees with one of them at least as far as the threshold: the
/// one that serves most devices is taken first, then the one that serves most of the others. Each
/// device is listed with the proxy that it agrees with best.
std::vector<PoolMember> cover_devices(const CorrelationMatrix& matrix, double threshold);

/// Proxies that grow with the fleet. Every device that comes is measured on the same sample
/// designs; it gets the proxy that it agrees with best, or becomes a new one if none fits.
class ProxyPool {
 public:
  explicit ProxyPool(double threshold) : threshold_(threshold) {}

  struct Place {
    std::string proxy = {};                      ///< the device itself if it became one
    std::optional<SrccEstimate> agreement = {};  ///< with the nearest proxy; none: there was none
    bool is_new = false;
  };

  /// Fails with `invalid_input` if the latencies have no order, or are of other designs than those
  /// before, which shows in their number.
  Result<Place> place(std::string device, std::vector<double> latency_ms);

  const std::vector<std::string>& proxies() const { return names_; }

 private:
  double threshold_;
  std::vector<std::string> names_;
  std::vector<std::vector<double>> latency_ms_;
};

}  // namespace fleetfit::transfer
