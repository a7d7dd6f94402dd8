#include "train/workload_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "train/torch/checkpoint.h"

namespace fleetfit::train {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenCheckpoints = 60s;

OptimizerOptions optimizer_of(const workloads::Settings& settings) {
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

}  // namespace

core::Fields fields_of(const WorkloadPlace*) {
  static constexpr core::Field kAll[] = {core::field<&WorkloadPlace::epoch>("epoch").from(0),
                                         core::field<&WorkloadPlace::step>("step").from(0),
                                         core::field<&WorkloadPlace::steps>("steps").from(0),
                                         core::field<&WorkloadPlace::samples>("samples").from(0),
                                         core::field<&WorkloadPlace::accuracy>("accuracy"),
                                         core::field<&WorkloadPlace::loss>("loss"),
                                         core::field<&WorkloadPlace::elapsed_s>("elapsed_s")};
  return {.all = kAll};
}

WorkloadTrainer::WorkloadTrainer(const workloads::Workload& workload,
                                 const workloads::TrialRequest& request, const WorkloadTask& task,
                                 TorchNetwork& network, const TrainingContext& context)
    : workload_(workload),
      request_(request),
      task_(task),
      network_(network),
      context_(context),
      random_(static_cast<std::uint64_t>(request.settings.integer("seed"))),
      optimizer_(network.parameters(), network.decaying(), optimizer_of(request.settings)),
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
  std::vector<std::int64_t> order(static_cast<std::size_t>(task_.size()));
  std::iota(order.begin(), order.end(), 0);
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
  Checkpoint checkpoint{.notes = notes.dump(), .numbers = {}};
  keep_numbers(state(), checkpoint);
  return write_checkpoint(file(), checkpoint);
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
    return fail(ErrorCode::invalid_input, fmt::format("{} is of {} samples, and the data have {}",
                                                      file(), place.samples, task_.size()));
  FLEETFIT_TRY(put_numbers(state(), *checkpoint, file()));
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

}  // namespace fleetfit::train
