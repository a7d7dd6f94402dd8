#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fleetfit/adapt/evaluator.h"
#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/elastic/bundle.h"

/// The images that subnets of a bundle are evaluated on.
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

}  // namespace fleetfit::app
