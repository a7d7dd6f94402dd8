#include "fleetfit/train/workload.h"
#include "fleetfit/core/file.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/train/images.h"
#include "train/checkpoint.h"
#include "train/torch/border.h"
#include "train/torch/parameters.h"
#include "train/workload_task.h"

namespace fleetfit::train {
namespace {

namespace fs = std::filesystem;

OptimizerOptions optimizer_for(const workloads::Settings& settings) {
  constexpr double kLongestGradient = 5;
  return {.kind = settings.text("optimizer") == "adam" ? OptimizerKind::adam : OptimizerKind::sgd,
          .momentum = settings.number("momentum"),
          .decay = settings.number("weight_decay"),
          .max_norm = kLongestGradient};
}

nlohmann::json identity(const workloads::Workload& workload,
                        const workloads::TrialRequest& request) {
  return {{"workload", workload.name}, {"settings", request.settings.key()}};
}

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

core::Fields fields_of(const WorkloadPlace*) {
  static constexpr core::Field kAll[] = {
      core::field<&WorkloadPlace::epoch>("epoch").from(0),
      core::field<&WorkloadPlace::step>("step").from(0),
      core::field<&WorkloadPlace::steps>("steps").from(0),
      core::field<&WorkloadPlace::samples>("samples").from(0),
      FLEETFIT_MEMBERS(WorkloadPlace, accuracy, loss, elapsed_s)};
  return {.all = kAll};
}

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

WorkloadTrainer::WorkloadTrainer(const workloads::Workload& workload,
                                 const workloads::TrialRequest& request, const WorkloadTask& task,
                                 TorchNetwork& network, const TrainingContext& context)
    : workload_(workload),
      request_(request),
      task_(task),
      network_(network),
      context_(context),
      random_(static_cast<std::uint64_t>(request.settings.integer("seed"))),
      optimizer_(network.parameters(), network.decaying(), optimizer_for(request.settings)),
      start_(context.clock.now()),
      saved_(start_) {}

std::string WorkloadTrainer::file() const {
  return (std::filesystem::path(request_.checkpoint_dir) / "training").string();
}

double WorkloadTrainer::elapsed_s() const {
  return place_.elapsed_s + std::chrono::duration<double>(context_.clock.now() - start_).count();
}

std::vector<at::Tensor> WorkloadTrainer::state() {
  auto all = network_.state();
  const auto remembered = optimizer_.state();
  all.insert(all.end(), remembered.begin(), remembered.end());
  return all;
}

std::int64_t WorkloadTrainer::batch() const {
  return std::min(request_.settings.integer("batch_size"), place_.samples);
}

/// Small shares of the data are parts of larger ones.
std::vector<std::int64_t> WorkloadTrainer::order_of_epoch() const {
  auto order = core::counting(task_.size());
  random_.split("share").shuffle(order);
  order.resize(static_cast<std::size_t>(place_.samples));
  random_.split("epochs").split(static_cast<std::uint64_t>(place_.epoch)).shuffle(order);
  return order;
}

double WorkloadTrainer::rate() const {
  constexpr double kWarmUpSteps = 50;
  const auto& settings = request_.settings;
  const double warm = std::min(1.0, (static_cast<double>(place_.steps) + 1) / kWarmUpSteps);
  return settings.number("learning_rate") * warm *
         std::pow(settings.number("learning_rate_decay"), static_cast<double>(place_.epoch));
}

Status WorkloadTrainer::step(std::span<const std::int64_t> places) {
  const auto random = random_.split("steps").split(static_cast<std::uint64_t>(place_.steps));
  network_.batch_statistics(true);
  network_.drop_out(request_.settings.number("dropout"), random.split("dropout").seed());
  FLEETFIT_ASSIGN(const auto loss, task_.loss(network_, places, random));
  if (!std::isfinite(loss.item<double>()))
    return fail(ErrorCode::unstable,
                fmt::format("the loss became infinite in epoch {}; a learning_rate below {:g} may "
                            "help",
                            place_.epoch + 1, request_.settings.number("learning_rate")));
  loss.backward();
  optimizer_.step(rate());
  ++place_.step;
  ++place_.steps;
  return {};
}

Status WorkloadTrainer::run_epoch() {
  if (place_.step == 0)
    place_.samples = std::clamp<std::int64_t>(
        std::llround(request_.data_fraction * static_cast<double>(task_.size())), 1, task_.size());
  const auto order = order_of_epoch();
  const auto size = batch();
  const std::span<const std::int64_t> all(order);
  while ((place_.step + 1) * size <= place_.samples && !is_stopped()) {
    const auto first = static_cast<std::size_t>(place_.step * size);
    FLEETFIT_TRY(step(all.subspan(first, static_cast<std::size_t>(size))));
    if (context_.clock.now() - saved_ < kBetweenCheckpoints) continue;
    FLEETFIT_TRY(save());
  }
  return is_stopped() ? Status() : finish_epoch();
}

Status WorkloadTrainer::finish_epoch() {
  network_.batch_statistics(false);
  network_.drop_out(0, 0);
  const auto score = task_.score(network_, context_.stop);
  // Stopped while the epoch was judged: it is judged again when it is taken up.
  if (!score && score.error().code == ErrorCode::cancelled) return {};
  FLEETFIT_TRY(score);
  if (!std::isfinite(score->loss))
    return fail(
        ErrorCode::unstable,
        fmt::format("the loss on validation data became infinite in epoch {}", place_.epoch + 1));
  place_.accuracy = score->accuracy;
  place_.loss = score->loss;
  ++place_.epoch;
  place_.step = 0;
  return save();
}

Status WorkloadTrainer::save() {
  saved_ = context_.clock.now();
  auto place = place_;
  place.elapsed_s = elapsed_s();
  auto notes = core::to_json<nlohmann::json>(place);
  notes["training"] = identity(workload_, request_);
  return write_checkpoint(file(), {.notes = notes.dump(), .numbers = numbers_of(state())});
}

Status WorkloadTrainer::take_up() {
  if (!request_.resume) return {};
  auto checkpoint = read_checkpoint(file());
  if (!checkpoint && checkpoint.error().code == ErrorCode::not_found) return {};
  FLEETFIT_TRY(checkpoint);
  FLEETFIT_ASSIGN(const auto document, core::parse_json(checkpoint->notes, file()));
  const core::JsonView notes(document, file());
  FLEETFIT_ASSIGN(const auto training, notes.at("training"));
  const auto now = identity(workload_, request_);
  FLEETFIT_TRY(check_identity(training.value(), now, file()));
  FLEETFIT_ASSIGN(const auto place, core::read<WorkloadPlace>(notes));
  if (place.samples > task_.size())
    return refuse(fmt::format("{} is of {} samples, and the data have {}", file(), place.samples,
                              task_.size()));
  if (!put_numbers(checkpoint->numbers, state())) return refuse(file() + " is of another network");
  place_ = place;
  return {};
}

Status WorkloadTrainer::run(const WorkloadListener& listener) {
  while (place_.epoch < request_.epochs && !is_stopped()) {
    const auto before = place_.epoch;
    FLEETFIT_TRY(run_epoch());
    if (place_.epoch > before && listener.on_epoch)
      listener.on_epoch({.epoch = place_.epoch, .accuracy = place_.accuracy, .loss = place_.loss});
  }
  return is_stopped() && place_.epoch < request_.epochs ? save() : Status();
}

/// As it is to be run: without what is for training only.
Status write_network(graph::Graph network, const fs::path& file) {
  FLEETFIT_TRY(graph::run_pass(network, "remove_identities"));
  return graph::export_onnx_file(network, file);
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
  FLEETFIT_TRY(core::create_folder(request.checkpoint_dir));
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
