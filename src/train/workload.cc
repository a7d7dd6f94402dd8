#include "fleetfit/train/workload.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <filesystem>

#include "fleetfit/graph/export.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/train/images.h"
#include "train/torch/guard.h"
#include "train/torch/threads.h"
#include "train/workload_trainer.h"

namespace fleetfit::train {
namespace {

namespace fs = std::filesystem;

/// As it is to be run: without what is for training only.
Status write_network(graph::Graph network, const fs::path& file) {
  FLEETFIT_TRY(graph::run_pass(network, "remove_identities"));
  return graph::export_onnx_file(network, file);
}

Status make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return {};
  return fail(ErrorCode::io, fmt::format("{}: {}", folder, error.message()));
}

Result<PreparedWorkload> prepare(const workloads::Workload& workload,
                                 const workloads::TrialRequest& request,
                                 const TrainingContext& context) {
  const auto& settings = request.settings;
  if (workload.name == "m5-spoken-digits") return prepare_sounds(settings, context);
  if (workload.name == "rnn-ag-news") return prepare_texts(settings, request.checkpoint_dir);
  if (workload.name == "yolo-scenes") return prepare_scenes(settings, context);
  return prepare_images(settings, context);
}

Result<WorkloadOutcome> judge_untrained(const PreparedWorkload& prepared, TorchNetwork& network,
                                        const std::string& file, const TrainingContext& context) {
  FLEETFIT_ASSIGN(const auto score, prepared.task->score(network, context.stop));
  return WorkloadOutcome{.accuracy = score.accuracy, .loss = score.loss, .model_file = file};
}

Result<WorkloadOutcome> train_prepared(const workloads::Workload& workload,
                                       const workloads::TrialRequest& request,
                                       const PreparedWorkload& prepared, TorchNetwork& network,
                                       const WorkloadListener& listener,
                                       const TrainingContext& context) {
  WorkloadTrainer trainer(workload, request, *prepared.task, network, context);
  FLEETFIT_TRY(trainer.take_up());
  const auto resumed_at = trainer.place().epoch;
  FLEETFIT_TRY(trainer.run(listener));
  const auto& place = trainer.place();
  WorkloadOutcome outcome{.accuracy = place.accuracy,
                          .loss = place.loss,
                          .epochs = place.epoch,
                          .resumed_at = resumed_at,
                          .samples = place.samples,
                          .elapsed_s = trainer.elapsed_s(),
                          .interrupted = place.epoch < request.epochs};
  if (outcome.interrupted) return outcome;
  const auto file = fs::path(request.checkpoint_dir) / "model.onnx";
  FLEETFIT_TRY(write_network(network.graph(), file));
  outcome.model_file = file.string();
  return outcome;
}

Result<WorkloadOutcome> run(const workloads::Workload& workload,
                            const workloads::TrialRequest& request,
                            const WorkloadListener& listener, const TrainingContext& context) {
  const auto& settings = request.settings;
  const bool on_gpu = settings.text("compute") == "cuda";
  FLEETFIT_TRY(check_available(on_gpu ? Compute::cuda : Compute::cpu));
  FLEETFIT_TRY(make_folder(request.checkpoint_dir));
  use_threads(context.pool.workers());
  at::globalContext().setDeterministicCuDNN(true);
  FLEETFIT_ASSIGN(auto prepared, prepare(workload, request, context));
  const auto untrained = fs::path(request.checkpoint_dir) / "untrained.onnx";
  FLEETFIT_TRY(write_network(prepared.network, untrained));
  if (listener.on_untrained) listener.on_untrained(untrained.string());
  FLEETFIT_ASSIGN(auto network, TorchNetwork::create(prepared.network, device_of(settings)));
  if (request.epochs == 0) return judge_untrained(prepared, *network, untrained.string(), context);
  return train_prepared(workload, request, prepared, *network, listener, context);
}

}  // namespace

Result<WorkloadOutcome> run_workload(const workloads::Workload& workload,
                                     const workloads::TrialRequest& request,
                                     const WorkloadListener& listener,
                                     const TrainingContext& context) {
  return guarded([&] { return run(workload, request, listener, context); });
}

}  // namespace fleetfit::train
