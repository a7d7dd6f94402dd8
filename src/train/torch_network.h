#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::train {

/// A graph of ours as something that torch can train: the same operators, the same weights.
class TorchNetwork {
 public:
  /// `unsupported`, naming the node, for an operator that cannot be trained here.
  static Result<std::unique_ptr<TorchNetwork>> create(const graph::Graph& graph,
                                                      torch::Device device);
  virtual ~TorchNetwork() = default;

  /// Inputs in the order of the graph's, any batch size; gives its outputs.
  virtual std::vector<torch::Tensor> forward(std::vector<torch::Tensor> inputs) = 0;
  /// For networks with one input and one output.
  torch::Tensor forward_one(torch::Tensor x) { return forward({std::move(x)})[0]; }

  /// What gradients change: weights, biases, scales and shifts; not batch-norm's statistics.
  virtual std::vector<torch::Tensor> parameters() = 0;

  /// All that makes up its state, parameters and batch-norm's statistics, in a fixed order: for
  /// checkpoints and for moving weights.
  virtual std::vector<torch::Tensor> state() = 0;

  /// Batch norm on the statistics of the batch, updating the running ones with `momentum`; or on
  /// the running ones (the state after create).
  virtual void batch_statistics(bool on, double momentum = 0.1) = 0;

  /// The graph with the weights as they are now.
  virtual graph::Graph graph() const = 0;
};

}  // namespace fleetfit::train
