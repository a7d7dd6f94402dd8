#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/train/training.h"

/// Training of networks that tell what is on an image.
namespace fleetfit::train {

enum class Compute : std::uint8_t { cpu, cuda };

/// `invalid_input` if there is no such device here.
Status check_available(Compute compute);

/// Labelled images: those to learn from, those by which the best epoch is chosen, those that tell
/// how good it is.
struct ImageSplits {
  const data::Dataset& train;
  const data::Dataset& validation;
  const data::Dataset& test;
};

struct ClassifierOptions {
  int epochs = 20;
  std::int64_t limit = 0;  ///< most images to learn from, chosen at random; 0: all
  std::int64_t batch = 0;  ///< 0: 128, less for few images
  /// The highest of the schedule; 0: what suits the network's kind.
  double learning_rate = 0;
  bool pretrained = false;  ///< starts from weights that are worth something: smaller steps
  double label_smoothing = 0.05;
  bool flip = true;  ///< images are as likely the other way round
  std::uint64_t seed = 1;
  Compute compute = Compute::cpu;

  /// Where to keep a training that may be taken up again; written after each epoch and every
  /// minute, removed by nobody here.
  std::optional<std::filesystem::path> checkpoint = std::nullopt;
  bool resume = false;     ///< take up what is there, if it is the same training
  std::string title = {};  ///< names model and data in the checkpoint
};

struct TrainedClassifier {
  graph::Graph graph;              ///< with the weights of the best epoch
  std::optional<double> accuracy;  ///< on the test split (of pixels, if they have classes); none if
                                   ///< interrupted
  double validation_accuracy = 0;  ///< of the best epoch; 0 before the first
  double loss = 0;                 ///< mean of the last epoch
  int epochs = 0;                  ///< that were finished, also before a resumption
  int best_epoch = 0;              ///< counted from 1; 0 before the first
  int resumed_at = 0;              ///< epochs that were finished when it was taken up again
  std::int64_t images = 0;         ///< learnt from in each epoch
  double elapsed_s = 0;            ///< also before a resumption
  bool interrupted = false;
};

/// Trains a network on pixels / 255. It has one input (N x channels x height x width, 1 or 3
/// channels) and one output of logits or probabilities: N x classes, or N x classes x height x
/// width for data with a class for each pixel. The same seed gives the same network on the same
/// machine, whether or not it was killed and resumed.
///
/// Fails with `invalid_input` if network and data do not fit, if there is no such device, or if the
/// checkpoint is of another training; `unsupported` for operators that cannot be trained;
/// `unstable` if the loss becomes infinite.
Result<TrainedClassifier> train_classifier(const graph::Graph& network, const ImageSplits& data,
                                           const ClassifierOptions& options,
                                           const TrainingContext& context);

}  // namespace fleetfit::train
