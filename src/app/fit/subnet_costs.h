#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/fit/source.h"
#include "fleetfit/space/table.h"

/// What subnets of an elastic model cost on devices, as far as a fit needs it.
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

struct KnownSubnetsOptions {
  std::size_t subnets = 600;
  std::uint64_t seed = 1;
};

/// What is known of subnets before a device was measured, as a table from which few-shot transfer
/// learns: their latency on the proxy, their multiply-accumulates, weights and activations. Devices
/// differ from the proxy mostly in how much of each they mind.
Result<space::DesignTable> known_subnets(const std::vector<elastic::Supernet>& models,
                                         const elastic::SubnetSpace& space,
                                         const adapt::LatencyTable& proxy,
                                         const KnownSubnetsOptions& options);

/// The proxy's table corrected by what was measured on a device, for a search there.
adapt::LatencyTable corrected_table(const adapt::LatencyTable& proxy,
                                    const elastic::SubnetSpace& space,
                                    const std::vector<fit::FitPoint>& measured);

/// "table:FILE" (docs/formats/latency-table.md) or "predictor:FILE", by which every branch is
/// priced.
Result<adapt::LatencyTable> table_from(const std::string& source,
                                       const std::vector<elastic::Supernet>& models);

/// A subnet by a table, with the range that the table's own error gives.
fit::FitPoint point_by_table(const adapt::LatencyTable& table, const elastic::SubnetSpace& space,
                             space::Design design);

/// The most accurate whose whole range keeps the budget, by the table alone.
void choose_by_table(const adapt::LatencyTable& table, const elastic::SubnetSpace& space,
                     const fit::Prospects& prospects, fit::FittedDevice& device);

}  // namespace fleetfit::app
