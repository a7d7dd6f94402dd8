#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "app/elastic/subnet_images.h"
#include "fleetfit/adapt/evaluator.h"
#include "fleetfit/core/progress.h"

/// Accuracies of subnets that outlive the process.
namespace fleetfit::app {

/// What subnets are evaluated with. Borrows everything.
struct AccuracyParts {
  const std::vector<elastic::Supernet>& models;  ///< for batches of kImageBatch images
  const elastic::SubnetSpace& space;
  const adapt::LatencyTable& table;
  core::Progress& progress;
  std::stop_token stop = {};
  int threads = 1;
};

/// Evaluates each subnet once and keeps what it has found in a file, so that work that was
/// interrupted is not done again. Belongs to one thread.
class SubnetAccuracies final : public adapt::SubnetQuality {
 public:
  /// `file` says by its name what the numbers depend on; one that is damaged counts as none.
  SubnetAccuracies(AccuracyParts parts, std::unique_ptr<adapt::ImageBatches> images,
                   std::filesystem::path file);

  Result<std::vector<adapt::Evaluation>> evaluate(space::DesignBatch designs) override;
  std::size_t evaluated() const override { return known_.size(); }
  std::size_t images() const { return images_->images(); }

 private:
  Status evaluate_missing(space::DesignBatch designs);
  Status save() const;

  AccuracyParts parts_;
  std::unique_ptr<adapt::ImageBatches> images_;
  std::filesystem::path file_;
  std::unique_ptr<adapt::Evaluator> evaluator_;     // made when something is missing
  std::map<std::string, adapt::Evaluation> known_;  // by the subnet's text
};

}  // namespace fleetfit::app
