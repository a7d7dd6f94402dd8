#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::train {

class TorchImages;

/// A graph of ours as something that torch can train: the same operators, the same weights. Belongs
/// to one thread at a time. (at::Tensor is torch::Tensor; this header is ten seconds quicker to
/// compile than torch/torch.h.)
class TorchNetwork {
 public:
  /// `unsupported`, naming the node, for an operator that cannot be trained here. The network is
  /// run once on zeros, so that `forward` on inputs of the graph's shapes works, whatever their
  /// batch.
  static Result<std::unique_ptr<TorchNetwork>> create(const graph::Graph& graph,
                                                      const at::Device& device);
  virtual ~TorchNetwork() = default;

  /// Inputs in the order of the graph's, any batch size; gives its outputs. An extent in front that
  /// the graph states as its own batch means the batch at hand. What torch throws comes through,
  /// with the node's name in front: to be caught where the module's border is (`guarded`).
  virtual std::vector<at::Tensor> forward(std::vector<at::Tensor> inputs) = 0;
  /// For networks with one input and one output.
  at::Tensor forward_one(at::Tensor x) { return forward({std::move(x)})[0]; }

  /// What gradients change: weights, biases, scales and shifts; not batch-norm's statistics.
  virtual std::vector<at::Tensor> parameters() = 0;

  /// Whether each parameter is one that decays: weights of layers do, biases, scales and shifts do
  /// not. In the order of `parameters`.
  virtual std::vector<bool> decaying() const = 0;

  /// All that makes up its state, parameters and batch-norm's statistics, in a fixed order: for
  /// checkpoints and for moving weights.
  virtual std::vector<at::Tensor> state() = 0;

  /// Batch norm on the statistics of the batch, updating the running ones with `momentum`; or on
  /// the running ones (the state after create). Where the running ones stay as they are, because
  /// they are used or `momentum` is 0, several threads may be in `forward` at once.
  virtual void batch_statistics(bool on, double momentum = 0.1) = 0;

  /// From now on each Dropout leaves out this share of the elements, others with every seed, and
  /// scales the rest up; 0 (the state after create): none.
  virtual void drop_out(double share, std::uint64_t seed) = 0;

  /// The graph with the weights as they are now.
  virtual graph::Graph graph() const = 0;
};

/// Share of the images, or of their pixels, whose class the network finds, with the statistics that
/// it has. `cancelled` if asked to stop.
Result<double> accuracy_of(TorchNetwork& network, const TorchImages& images,
                           const std::stop_token& stop = {});

}  // namespace fleetfit::train
