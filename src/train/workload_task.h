#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/train/training.h"
#include "fleetfit/workloads/workloads.h"
#include "train/torch/network.h"

namespace fleetfit::train {

/// How good a network is on validation data.
struct WorkloadScore {
  double accuracy = 0;
  double loss = 0;
};

/// What a workload learns, and from what. Its data are in memory, on the device. Used by one thread
/// at a time.
class WorkloadTask {
 public:
  virtual ~WorkloadTask() = default;

  /// Samples to learn from.
  virtual std::int64_t size() const = 0;

  /// The mean loss of the network on the samples at these places, changed at random where that
  /// helps.
  virtual Result<at::Tensor> loss(TorchNetwork& network, std::span<const std::int64_t> places,
                                  core::Random random) const = 0;

  /// On all validation data. `cancelled` if asked to stop.
  virtual Result<WorkloadScore> score(TorchNetwork& network, const std::stop_token& stop) const = 0;
};

/// A task with the untrained network for it.
struct PreparedWorkload {
  graph::Graph network;
  std::unique_ptr<WorkloadTask> task;
};

// One for each kind of workload. `folder` is where files go that belong to the network.
Result<PreparedWorkload> prepare_images(const workloads::Settings& settings,
                                        const TrainingContext& context);
Result<PreparedWorkload> prepare_sounds(const workloads::Settings& settings,
                                        const TrainingContext& context);
Result<PreparedWorkload> prepare_texts(const workloads::Settings& settings,
                                       const std::string& folder);
Result<PreparedWorkload> prepare_scenes(const workloads::Settings& settings,
                                        const TrainingContext& context);

/// The device that the settings name.
at::Device device_of(const workloads::Settings& settings);

/// Which of `count` samples are used, when no more than the setting `limit` are wanted: always the
/// same ones, in order.
std::vector<std::size_t> limited(std::size_t count, const workloads::Settings& settings);

/// Validation data are fewer where less is learnt from.
std::int64_t validation_limit(const workloads::Settings& settings);

}  // namespace fleetfit::train
