#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/fit/device_fitter.h"
#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/app/fitting.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/space/table.h"

/// Subnets of an elastic model, as a fit looks at them.
namespace fleetfit::app {

/// Counts the networks that another timer times. Borrows it.
class CountedTimer final : public adapt::NetworkTimer {
 public:
  explicit CountedTimer(adapt::NetworkTimer& timer) : timer_(timer) {}

  Result<std::vector<adapt::NetworkTime>> time_in_turns(
      std::span<const graph::Graph> networks) override {
    networks_ += networks.size();
    return timer_.time_in_turns(networks);
  }

  std::size_t networks() const { return networks_; }

 private:
  adapt::NetworkTimer& timer_;
  std::size_t networks_ = 0;
};

struct TaughtOptions {
  std::size_t subnets = 600;
  std::uint64_t seed = 1;
};

/// What is known of subnets before a device was measured, as a table from which few-shot transfer
/// learns: their latency on the proxy, their multiply-accumulates, weights and activations. Devices
/// differ from the proxy mostly in how much of each they mind.
Result<space::DesignTable> taught_subnets(const std::vector<elastic::Supernet>& models,
                                          const elastic::SubnetSpace& space,
                                          const adapt::LatencyTable& proxy,
                                          const TaughtOptions& options);

/// The proxy's table bent towards what was measured on a device, for a search there.
adapt::LatencyTable bent_table(const adapt::LatencyTable& proxy, const elastic::SubnetSpace& space,
                               const std::vector<FitPoint>& measured);

/// "table:FILE" (docs/formats/latency-table.md) or "predictor:FILE", by which every branch is
/// priced.
Result<adapt::LatencyTable> believed_table(const std::string& source,
                                           const std::vector<elastic::Supernet>& models);

/// A subnet by a table, with the range that the table's own error gives.
FitPoint believed_point(const adapt::LatencyTable& table, const elastic::SubnetSpace& space,
                        space::Design design);

/// The most accurate whose whole range keeps the budget, by the table alone.
void choose_by_table(const adapt::LatencyTable& table, const elastic::SubnetSpace& space,
                     const Prospects& prospects, FittedDevice& device);

/// Takes those points out of the device's pool, and of what larger budgets would give, that are no
/// more accurate than cheaper ones. The best stays: it was chosen without looking at these
/// accuracies.
void drop_what_is_no_better(FittedDevice& device);

struct WriteRequest {
  std::filesystem::path bundle = {};
  std::string bundle_sha256 = {};
  std::string data = {};
  std::filesystem::path folder = {};
  std::string device_name = {};  ///< of the workplace
  bool int8 = false;
  std::uint64_t seed = 1;
  int threads = 1;
};

/// Writes the device's model (ONNX; quantized if it computes with int8, and then its accuracy is
/// that of the quantized one) and its pool.
Status write_fitted(const WriteRequest& request, FittedDevice& device, core::Progress& progress);

}  // namespace fleetfit::app
