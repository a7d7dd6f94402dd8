#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/adapt/evaluator.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/elastic/bundle.h"

/// The images that subnets of a bundle are evaluated on, and accuracies on them that outlive the
/// process.
namespace fleetfit::app {

// Small enough that the features of a batch stay in the caches of a core.
inline constexpr std::size_t kImageBatch = 25;
inline constexpr std::size_t kLeastImages = 20;

/// Images of a split in a random order that depends on the seed alone.
struct SubnetImages {
  std::shared_ptr<const data::Dataset> dataset;  // shared by the parts that are looked at
  std::vector<std::size_t> order;
  data::Preprocessing preprocessing;

  /// `count` of them from the number `first` on, or as many as there are.
  std::unique_ptr<adapt::ImageBatches> part(std::size_t first, std::size_t count) const;
};

struct ImagesRequest {
  std::filesystem::path bundle = {};
  std::string data = {};
  std::uint64_t seed = 1;
};

/// Fails with `invalid_input` on data that does not fit the bundle's models, or has too few images.
Result<SubnetImages> open_images(const ImagesRequest& request, const elastic::Bundle& bundle,
                                 data::Split split);

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
