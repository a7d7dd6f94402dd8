#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/train/elastify.h"
#include "train/torch/images.h"

/// What an elastification works with: its images, and how far it has come.
namespace fleetfit::train {

/// The images of an elastification in memory, in the form that the model takes.
struct LoadedImages {
  TorchImages training;
  std::optional<TorchImages> first;  ///< for the first stage, if it has images of its own
  TorchImages validation;            ///< some of them
  TorchImages test;
  TorchImages sample;  ///< some of the test images

  /// Fails with `invalid_input` if the model takes no images, if its classes are not the data's, or
  /// if there are fewer than one batch to learn from.
  static Result<LoadedImages> load(const elastic::Supernet& supernet, const ImageSplits& images,
                                   const ElastifyOptions& options, const TrainingContext& context);

  /// Reads those of the first stage. `takes` says whether the model can work on a form.
  Status load_first(const std::function<bool(const ImageForm&)>& takes,
                    const ElastifyOptions& options, const TrainingContext& context);

  /// What a stage, counted from 0, learns from.
  const TorchImages& of_stage(std::size_t stage) const {
    return stage == 0 && first ? *first : training;
  }
};

/// How many images there are to learn from.
std::int64_t training_images(const ElastifyOptions& options, const ImageSplits& images);

/// How far an elastification has come; the notes of its checkpoints.
struct ElastifyPlace {
  std::string subject = {};  ///< what is learned from what; must be the same to go on
  std::size_t stage = 0;     ///< the next step: its stage, epoch and number
  int epoch = 0;
  std::int64_t step = 0;
  double loss_sum = 0;  ///< of the epoch's steps so far
  double elapsed_s = 0;
  std::vector<ElastifyEpoch> epochs = {};  ///< that are finished
};
core::Fields fields_of(const ElastifyPlace*);

std::string to_notes(const ElastifyPlace& place);

/// `name` stands for the file in messages, which are `invalid_input`.
Result<ElastifyPlace> read_notes(const std::string& notes, const std::string& name);

}  // namespace fleetfit::train
