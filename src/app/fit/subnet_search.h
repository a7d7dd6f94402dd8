#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "app/elastic/subnet_images.h"
#include "app/fit/fit_folder.h"
#include "app/fit/fit_sources.h"
#include "fleetfit/adapt/guided.h"
#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/fit/source.h"
#include "fleetfit/space/table.h"

/// Which subnets of an elastic model devices may get, and what they cost there.
namespace fleetfit::app {

/// How accurate subnets are: on some images to search by, on others to choose by, and on test
/// images for the report. What was evaluated once is in the folder. Borrows what it is made of.
class SubnetRatings {
 public:
  SubnetRatings(const FitPlace& place, const FitFolder& folder, const elastic::SubnetSpace& space);

  Status open(const std::filesystem::path& file, const elastic::Bundle& bundle);

  /// `proxy` says what branches take, roughly; it is borrowed.
  std::unique_ptr<adapt::SubnetQuality> to_search(const adapt::LatencyTable& proxy) const;
  Result<std::vector<double>> to_choose(space::DesignBatch designs,
                                        const adapt::LatencyTable& proxy);
  Result<std::vector<double>> to_test(space::DesignBatch designs, const adapt::LatencyTable& proxy);

  /// Where accuracies are from, for people.
  std::string about() const;

 private:
  std::unique_ptr<SubnetAccuracies> on(std::unique_ptr<adapt::ImageBatches> images,
                                       std::string_view what,
                                       const adapt::LatencyTable& proxy) const;

  const FitPlace& place_;
  const FitFolder& folder_;
  const elastic::SubnetSpace& space_;
  elastic::Bundle bundle_;  // for batches of images
  SubnetImages validation_;
  SubnetImages test_;
  std::size_t choice_images_ = 0;
  std::size_t test_images_ = 0;
};

struct SubnetSearchPlan {
  /// Looks at all latencies; otherwise only where an earlier search may not have looked.
  bool thorough = true;
  std::uint64_t seed = 1;
  std::stop_token stop = {};
};

/// Searches subnets for one device and adds the finalists: the fastest one, and if the budget can
/// be kept, the best near it. Gives how many a fit of this device alone would time. Fails with
/// `cancelled` when stopped.
Result<std::size_t> add_finalists(const adapt::SubnetProblem& problem,
                                  adapt::SubnetQuality& quality, const SubnetSearchPlan& plan,
                                  std::set<std::string>& finalists);

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
