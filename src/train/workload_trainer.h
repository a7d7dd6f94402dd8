#pragma once

#include "fleetfit/train/workload.h"
#include "train/torch/optimizer.h"
#include "train/workload_task.h"

namespace fleetfit::core {
struct Fields;
}

namespace fleetfit::train {

/// How far a training is.
struct WorkloadPlace {
  std::int64_t epoch = 0;    ///< finished ones
  std::int64_t step = 0;     ///< of the epoch at hand
  std::int64_t steps = 0;    ///< of all epochs
  std::int64_t samples = 0;  ///< of the epoch at hand, or of the last one
  double accuracy = 0;       ///< of the last epoch
  double loss = 0;           ///< of the last epoch, on validation data
  double elapsed_s = 0;
};
core::Fields fields_of(const WorkloadPlace*);

/// Trains a network for a task, epoch after epoch, with checkpoints. What a step does depends on
/// the settings and the steps before it, never on how many epochs are still to come: a training
/// that is granted more epochs later goes on as if it had known.
class WorkloadTrainer {
 public:
  /// Borrows everything.
  WorkloadTrainer(const workloads::Workload& workload, const workloads::TrialRequest& request,
                  const WorkloadTask& task, TorchNetwork& network, const TrainingContext& context);

  /// Goes on from the checkpoint, if the request says so and there is one.
  Status take_up();

  /// Until all epochs are done or somebody asks to stop.
  Status run(const WorkloadListener& listener);

  const WorkloadPlace& place() const { return place_; }
  bool is_stopped() const { return context_.stop.stop_requested(); }
  double elapsed_s() const;

 private:
  Status run_epoch();
  Status step(std::span<const std::int64_t> places);
  Status finish_epoch();
  Status save();
  std::vector<std::int64_t> order_of_epoch() const;
  std::int64_t batch() const;
  double rate() const;
  std::vector<at::Tensor> state();
  std::string file() const;

  const workloads::Workload& workload_;
  const workloads::TrialRequest& request_;
  const WorkloadTask& task_;
  TorchNetwork& network_;
  const TrainingContext& context_;
  core::Random random_;
  TorchOptimizer optimizer_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds saved_;
  WorkloadPlace place_;
};

}  // namespace fleetfit::train
