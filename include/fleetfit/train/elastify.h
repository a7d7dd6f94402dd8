#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/bundle.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/train/images.h"
#include "fleetfit/train/training.h"

/// The branches of a supernet learn to stand for what they replace. docs/elastic.md says how.
namespace fleetfit::train {

enum class ElastifyRecipe : std::uint8_t {
  /// Every branch learns in every step from the original's own features; then subnets of all
  /// sizes learn from labels, from what the original says and from its features.
  standard,
  /// AdaptiveNet's: one random subnet in every step, first from features, then from labels.
  paper,
};

struct ElastifyOptions {
  ElastifyRecipe recipe = ElastifyRecipe::standard;
  int distill_epochs = 1;
  int tune_epochs = 1;
  std::int64_t batch = 64;     ///< images of a step
  double distill_rate = 2e-3;  ///< of the optimizer, where it is highest
  double tune_rate = 1e-3;
  std::int64_t limit = 0;  ///< most images to learn from, chosen at random; 0: all
  std::uint64_t seed = 1;
  Compute compute = Compute::cpu;
  /// Two-stage models: images of what the backbone was trained on first. The first stage learns
  /// features from them, without their labels; all else is done with the images of the task. They
  /// keep their size if the network can work on it. None: the first stage learns from the task's
  /// images too. Borrowed.
  const data::Dataset* first_data = nullptr;
  /// Where to keep work that may be taken up again; written after each epoch and every minute,
  /// removed by nobody here.
  std::optional<std::filesystem::path> checkpoint = std::nullopt;
  bool resume = false;  ///< go on from the checkpoint if there is one
  /// What is learned from what. A checkpoint of another subject or of other options is refused.
  std::string subject = {};
};

/// Subnets whose multiply-accumulates, as a share of the original's, lie in [low, high).
struct RangeAccuracy {
  double low = 0;
  double high = 0;
  double mean = 0;  ///< of their accuracies
  std::size_t subnets = 0;
  std::optional<double> mean_iou = std::nullopt;  ///< the same, if they tell classes of pixels
};
core::Fields fields_of(const RangeAccuracy*);

struct ElastifyEpoch {
  std::string stage = {};  ///< "distill" or "tune"
  int epoch = 0;           ///< from 1
  double loss = 0;         ///< mean over its steps
  std::vector<RangeAccuracy> validation = {};
};
core::Fields fields_of(const ElastifyEpoch*);

struct Elastified {
  elastic::Supernet supernet = {};
  double original_accuracy = 0;  ///< on all test images, or all of their pixels
  std::optional<double> original_mean_iou = std::nullopt;  ///< if it classifies pixels
  /// Random subnets of all sizes on some of the test images.
  std::vector<elastic::AccuracySample> samples = {};
  std::int64_t sample_images = 0;
  std::vector<RangeAccuracy> by_share = {};  ///< of the samples
  std::vector<ElastifyEpoch> epochs = {};
  double elapsed_s = 0;  ///< with what was done before a checkpoint
  /// Somebody asked to stop: the supernet is what was learned so far, the checkpoint is still
  /// there, and there are no accuracies.
  bool is_interrupted = false;
};

/// Learns. The same seed gives the same supernet, whatever the number of threads and however often
/// the work was interrupted and resumed. Fails with `invalid_input` if the images are not what the
/// model takes, if their classes are not as many as the model's or not of pixels as the model's
/// are, or if there are fewer than one batch.
Result<Elastified> elastify(const elastic::Supernet& supernet, const ImageSplits& images,
                            const ElastifyOptions& options, const TrainingContext& context);

/// Mean accuracies of the ranges of a tenth that have samples.
std::vector<RangeAccuracy> accuracy_by_share(const std::vector<elastic::AccuracySample>& samples);

}  // namespace fleetfit::train
