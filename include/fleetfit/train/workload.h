#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fleetfit/core/result.h"
#include "fleetfit/train/training.h"
#include "fleetfit/workloads/workloads.h"

/// The trainings that come with fleetfit, as trials of a study. docs/workloads.md describes them.
namespace fleetfit::train {

struct WorkloadEpoch {
  std::int64_t epoch = 0;  ///< from 1
  double accuracy = 0;     ///< on validation data
  double loss = 0;         ///< on validation data
};

struct WorkloadListener {
  /// The untrained network is there. Before anything is learned.
  std::function<void(const std::string& file)> on_untrained = {};
  /// An epoch is over and safe in the checkpoint.
  std::function<void(const WorkloadEpoch&)> on_epoch = {};
};

struct WorkloadOutcome {
  double accuracy = 0;  ///< on validation data, after the last epoch
  double loss = 0;
  std::string model_file = {};  ///< ONNX
  std::int64_t epochs = 0;      ///< that were finished, also before a resumption
  std::int64_t resumed_at = 0;  ///< epochs that were finished when it was taken up again
  std::int64_t samples = 0;     ///< learnt from in the last epoch
  double elapsed_s = 0;         ///< also before a resumption
  /// Somebody asked to stop: the checkpoint is there, and there is no model file.
  bool interrupted = false;
};

/// Trains as the request says. In its checkpoint folder are then `training` (the checkpoint,
/// written after each epoch, every minute and on interruption; it holds the old or the new state,
/// never a part of one), `untrained.onnx`, `model.onnx` and what else belongs to the network. With
/// 0 epochs nothing is learned, and the untrained network is the model.
///
/// The same seed gives the same network on the same machine and number of threads, whether or not
/// it was interrupted; so does a budget that was reached in several steps, as long as each epoch
/// had the same share of the data.
///
/// Fails with `invalid_input` if data and settings do not fit, if there is no such device or if the
/// checkpoint is of another training; `not_found` if the data are not there; `unstable` if the loss
/// becomes infinite.
Result<WorkloadOutcome> run_workload(const workloads::Workload& workload,
                                     const workloads::TrialRequest& request,
                                     const WorkloadListener& listener,
                                     const TrainingContext& context);

}  // namespace fleetfit::train
