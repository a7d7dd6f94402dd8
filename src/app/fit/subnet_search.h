#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "app/elastic/subnet_images.h"
#include "app/fit/fit_folder.h"
#include "app/fit/fit_sources.h"
#include "fleetfit/adapt/guided.h"

/// Which subnets of an elastic model devices may get.
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

}  // namespace fleetfit::app
