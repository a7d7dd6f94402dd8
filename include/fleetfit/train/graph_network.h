#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/graph_network.h"
#include "fleetfit/train/training.h"

namespace fleetfit::train {

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
