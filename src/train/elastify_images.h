#pragma once

#include <cstdint>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/train/elastify.h"
#include "train/torch_images.h"

namespace fleetfit::train {

/// The images of an elastification in memory, in the form that the model takes.
struct LoadedImages {
  TorchImages training;
  TorchImages validation;  ///< some of them
  TorchImages test;
  TorchImages sample;  ///< some of the test images

  /// Fails with `invalid_input` if the model takes no images, if its classes are not as many as the
  /// data's, or if there are fewer than one batch to learn from.
  static Result<LoadedImages> load(const elastic::Supernet& supernet, const ImageSplits& images,
                                   const ElastifyOptions& options, const TrainingContext& context);
};

/// How many images there are to learn from.
std::int64_t training_images(const ElastifyOptions& options, const ImageSplits& images);

}  // namespace fleetfit::train
