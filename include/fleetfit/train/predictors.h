#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/dense_network.h"
#include "fleetfit/predict/graph_network.h"
#include "fleetfit/predict/regressor.h"
#include "fleetfit/train/training.h"

namespace fleetfit::train {

/// A multi-layer perceptron as it came out of training.
struct TrainedMlp {
  predict::DenseNetwork network;
  std::string settings;           ///< that were chosen, for people
  double validation_percent = 0;  ///< mean error on the fifth of the rows that were not trained on
  int epochs = 0;                 ///< after which it was best
  Ended ended = Ended::epochs;    ///< why its training ended
  std::vector<double> out_of_fold;  ///< of each row, by a network that saw nothing of its fold
};

/// Trains networks of 1 to 6 hidden layers of 64 to 512 neurons by Adam on the squared percentage
/// error, and takes the one that is best on a fifth of the rows. Then it trains one more for each
/// fold, with the settings that were found. Without folds (`set.folds` below 2, `set.fold` may be
/// empty) there is no `out_of_fold`. `name` is what progress shows. Fails with `invalid_input` if
/// the set is no set, naming the row.
Result<TrainedMlp> train_mlp(const predict::TrainingSet& set, const std::string& name,
                             const TrainingOptions& options, const TrainingContext& context);

/// Graphs with their measured times. Borrows everything.
struct GraphTrainingSet {
  std::span<const std::string> features = {};  ///< names of a node's numbers
  std::span<const predict::NodeGraph> graphs = {};
  std::span<const double> ms = {};
};

/// A graph network as it came out of training.
struct TrainedGraphNetwork {
  predict::GraphNetwork network;
  std::string settings;  ///< that were chosen, for people
  double validation_percent =
      0;                        ///< mean error on the fifth of the graphs that were not trained on
  int epochs = 0;               ///< after which it was best
  Ended ended = Ended::epochs;  ///< why its training ended
};

/// Trains networks of 2 to 4 layers of messages, with readouts of both kinds, and takes the one
/// that is best on a fifth of the graphs. Fails with `invalid_input`, naming the graph, if a time
/// is not positive or a graph is none of the given features.
Result<TrainedGraphNetwork> train_graph_network(const GraphTrainingSet& set,
                                                const TrainingOptions& options,
                                                const TrainingContext& context);

}  // namespace fleetfit::train
