#include "fleetfit/train/images.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/train/segmentation.h"
#include "train/checkpoint.h"
#include "train/torch/border.h"
#include "train/torch/images.h"
#include "train/torch/network.h"
#include "train/torch/parameters.h"

namespace fleetfit::train {
namespace {

constexpr std::int64_t kStepsBetweenLooks = 100;

// ---- What suits a network and its data

template <class Op>
bool has(const graph::Graph& graph) {
  return std::ranges::any_of(
      graph.nodes, [](const graph::Node& node) { return std::holds_alternative<Op>(node.op); });
}

struct Recipe {
  OptimizerOptions optimizer;
  double rate = 0;
};

/// Transformers want Adam; without batch norm, large steps break a network.
Recipe recipe_for(const graph::Graph& graph, const ClassifierOptions& options, std::int64_t batch) {
  const double batch_share = std::sqrt(static_cast<double>(batch) / 128);
  Recipe recipe{.optimizer = {.decay = 5e-4}, .rate = 0.2 * batch_share};
  if (has<graph::LayerNorm>(graph)) {
    recipe = {.optimizer = {.kind = OptimizerKind::adam, .decay = 0.05, .max_norm = 1},
              .rate = 1e-3 * batch_share};
  } else if (!has<graph::BatchNorm>(graph)) {
    recipe = {.optimizer = {.decay = 5e-4, .max_norm = 2}, .rate = 0.03 * batch_share};
  }
  if (options.pretrained) recipe.rate /= 10;
  if (options.learning_rate > 0) recipe.rate = options.learning_rate;
  return recipe;
}

/// 128, and less where that would leave too few steps to learn anything.
std::int64_t batch_for(const ClassifierOptions& options, std::int64_t images) {
  if (options.batch > 0) return std::min(options.batch, images);
  constexpr std::int64_t kEnoughSteps = 600;
  std::int64_t batch = 128;
  while (batch > 16 && images * options.epochs / batch < kEnoughSteps) batch /= 2;
  return std::min(batch, images);
}

/// As many as are needed to tell epochs from each other.
std::int64_t validation_images(const ClassifierOptions& options) {
  return options.limit > 0 ? std::max<std::int64_t>(options.limit / 4, 200) : 0;
}

// ---- Checks

Result<ImageForm> input_form(const graph::Graph& network) {
  if (network.inputs.size() != 1 || network.outputs.size() != 1) {
    return refuse(fmt::format("the network has {} inputs and {} outputs, and should have one each",
                              network.inputs.size(), network.outputs.size()));
  }
  const auto& input = network.tensor(network.inputs[0]);
  const bool is_image =
      input.shape && input.shape->size() == 4 && ((*input.shape)[1] == 1 || (*input.shape)[1] == 3);
  if (!is_image) {
    return refuse(fmt::format("input '{}' is {} and should be N x 1 or 3 channels x height x width",
                              input.name,
                              input.shape ? graph::to_string(*input.shape) : "unknown"));
  }
  const auto& shape = *input.shape;
  return ImageForm{.channels = shape[1], .height = shape[2], .width = shape[3]};
}

Status check_classes(const graph::Graph& network, const ImageSplits& data) {
  const auto& output = network.tensor(network.outputs[0]);
  const auto classes = data.train.classes().size();
  const auto& shape = output.shape;
  const std::size_t rank = is_map(output) ? 4 : 2;
  if (shape && shape->size() == rank && (*shape)[1] == static_cast<std::int64_t>(classes))
    return check_label_form(network.tensor(network.inputs[0]), output, data.train);
  return refuse(fmt::format("output '{}' is {}, and the data has {} classes", output.name,
                            output.shape ? graph::to_string(*output.shape) : "unknown", classes));
}

/// Whether the network ends in probabilities, of which the loss needs the logarithm.
bool gives_probabilities(const graph::Graph& network) {
  for (const auto& node : network.nodes) {
    const auto* const softmax = std::get_if<graph::Softmax>(&node.op);
    if (softmax != nullptr && !softmax->log && node.outputs[0] == network.outputs[0]) return true;
  }
  return false;
}

// ---- Training

struct Splits {
  TorchImages train;
  TorchImages validation;
  TorchImages test;
};

/// How far a training is.
struct Place {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // of the epoch
  double loss_sum = 0;    // of the epoch's steps
  double last_loss = 0;   // mean of the epoch before
  double best = -1;
  std::int64_t best_epoch = 0;
  double elapsed_s = 0;
};

core::Fields fields_of(const Place*) {
  static constexpr core::Field kAll[] = {
      core::field<&Place::epoch>("epoch").from(0), core::field<&Place::step>("step").from(0),
      FLEETFIT_MEMBERS(Place, loss_sum, last_loss, best, best_epoch, elapsed_s)};
  return {.all = kAll};
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const auto& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

void copy_into(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

class Trainer {
 public:
  Trainer(TorchNetwork& network, const Splits& data, const ClassifierOptions& options,
          const TrainingContext& context)
      : network_(network),
        data_(data),
        options_(options),
        context_(context),
        random_(options.seed),
        probabilities_(gives_probabilities(network.graph())),
        batch_(batch_for(options, data.train.size())),
        recipe_(recipe_for(network.graph(), options, batch_)),
        optimizer_(network.parameters(), network.decaying(), recipe_.optimizer),
        loss_sum_(at::zeros({}, at::TensorOptions().device(device_of(options.compute)))),
        best_(copies_of(network.state())),
        start_(context.clock.now()),
        saved_(start_) {}

  Status take_up();
  Result<TrainedClassifier> run();

 private:
  ShuffledBatches batches_of(std::int64_t epoch) const;
  std::int64_t steps() const { return batches_of_epoch_ * options_.epochs; }
  bool is_stopped() const { return context_.stop.stop_requested(); }
  double elapsed_s() const;
  Status run_epoch(core::ProgressTask& progress);
  Status step(ShuffledBatches& batches);
  Status finish_epoch(core::ProgressTask& progress);
  Status look_at_loss();
  Status save();
  Status save_now_and_then();
  nlohmann::json identity() const;
  std::string time_left() const;

  TorchNetwork& network_;
  const Splits& data_;
  const ClassifierOptions& options_;
  const TrainingContext& context_;
  core::Random random_;
  bool probabilities_;
  std::int64_t batch_;
  Recipe recipe_;
  TorchOptimizer optimizer_;
  at::Tensor loss_sum_;  // on the device; steps need not wait for it
  std::vector<at::Tensor> best_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds saved_;
  std::int64_t batches_of_epoch_ = std::max<std::int64_t>(data_.train.size() / batch_, 1);
  std::int64_t steps_here_ = 0;  // since the start of this process
  Place place_;
  int resumed_at_ = 0;
};

ShuffledBatches Trainer::batches_of(std::int64_t epoch) const {
  const auto& form = data_.train.form();
  // The fewer passes, the less there is to be gained from images that look otherwise in each.
  const auto most = std::min(form.height, form.width) / 8;
  const Augmentation augmentation{.shift = std::min<std::int64_t>(most, options_.epochs / 2),
                                  .flip = options_.flip};
  return {data_.train,
          {.batch = batch_, .augmentation = augmentation},
          random_.split("epochs").split(static_cast<std::uint64_t>(epoch))};
}

double Trainer::elapsed_s() const {
  return place_.elapsed_s + std::chrono::duration<double>(context_.clock.now() - start_).count();
}

Status Trainer::step(ShuffledBatches& batches) {
  FLEETFIT_ASSIGN(const auto batch, batches.next(place_.step));
  auto outputs = network_.forward_one(batch.images);
  if (probabilities_) outputs = outputs.clamp_min(1e-12).log();
  constexpr std::int64_t kMean = 1;
  constexpr std::int64_t kIgnoreNone = -100;
  const auto loss = at::cross_entropy_loss(outputs, batch.labels, {}, kMean, kIgnoreNone,
                                           options_.label_smoothing);
  loss.backward();
  const auto number = place_.epoch * batches_of_epoch_ + place_.step;
  optimizer_.step(one_cycle_rate(recipe_.rate, number, steps()));
  loss_sum_.add_(loss.detach());
  ++place_.step;
  ++steps_here_;
  return {};
}

Status Trainer::look_at_loss() {
  place_.loss_sum += loss_sum_.item<double>();
  loss_sum_.zero_();
  if (std::isfinite(place_.loss_sum)) return {};
  return fail(ErrorCode::unstable,
              fmt::format("the loss became infinite in epoch {}; a learning rate below {:g} "
                          "(--learning-rate) may help",
                          place_.epoch + 1, recipe_.rate));
}

std::string Trainer::time_left() const {
  const auto left = steps() - place_.epoch * batches_of_epoch_;
  const double here_s = std::chrono::duration<double>(context_.clock.now() - start_).count();
  const double left_s = here_s / static_cast<double>(std::max<std::int64_t>(steps_here_, 1)) *
                        static_cast<double>(left);
  return left_s < 90 ? fmt::format("{:.0f} s", left_s) : fmt::format("{:.0f} min", left_s / 60);
}

Status Trainer::finish_epoch(core::ProgressTask& progress) {
  FLEETFIT_ASSIGN(const auto accuracy, accuracy_of(network_, data_.validation, context_.stop));
  place_.last_loss = place_.loss_sum / static_cast<double>(place_.step);
  ++place_.epoch;
  place_.step = 0;
  place_.loss_sum = 0;
  if (accuracy >= place_.best) {
    place_.best = accuracy;
    place_.best_epoch = place_.epoch;
    copy_into(best_, network_.state());
  }
  progress.message(
      fmt::format("epoch {} of {}: loss {:.3f}, accuracy {:.2f} % on validation "
                  "images, {} left",
                  place_.epoch, options_.epochs, place_.last_loss, 100 * accuracy, time_left()));
  return save();
}

Status Trainer::save_now_and_then() {
  if (context_.clock.now() - saved_ < kBetweenCheckpoints) return {};
  return save();
}

Status Trainer::run_epoch(core::ProgressTask& progress) {
  auto batches = batches_of(place_.epoch);
  network_.batch_statistics(true);
  while (place_.step < batches_of_epoch_ && !is_stopped()) {
    FLEETFIT_TRY(step(batches));
    progress.advance(static_cast<std::uint64_t>(batch_));
    if (place_.step % kStepsBetweenLooks == 0) FLEETFIT_TRY(look_at_loss());
    FLEETFIT_TRY(save_now_and_then());
  }
  FLEETFIT_TRY(look_at_loss());
  if (is_stopped()) return {};
  auto finished = finish_epoch(progress);
  // Stopped while the epoch was looked at: it is looked at again when it is taken up.
  if (!finished && finished.error().code == ErrorCode::cancelled) return {};
  return finished;
}

// ---- Checkpoints

nlohmann::json Trainer::identity() const {
  return {{"title", options_.title},       {"epochs", options_.epochs},
          {"images", data_.train.size()},  {"batch", batch_},
          {"learning rate", recipe_.rate}, {"label smoothing", options_.label_smoothing},
          {"flip", options_.flip},         {"seed", options_.seed}};
}

std::vector<at::Tensor> all_of(TorchNetwork& network, const TorchOptimizer& optimizer,
                               const std::vector<at::Tensor>& best) {
  auto all = network.state();
  const auto remembered = optimizer.state();
  all.insert(all.end(), remembered.begin(), remembered.end());
  all.insert(all.end(), best.begin(), best.end());
  return all;
}

Status Trainer::save() {
  saved_ = context_.clock.now();
  if (!options_.checkpoint) return {};
  FLEETFIT_TRY(look_at_loss());
  Place place = place_;
  place.elapsed_s = elapsed_s();
  auto notes = core::to_json<nlohmann::json>(place);
  notes["training"] = identity();
  return write_checkpoint(
      *options_.checkpoint,
      {.notes = notes.dump(), .numbers = numbers_of(all_of(network_, optimizer_, best_))});
}

Status Trainer::take_up() {
  if (!options_.resume || !options_.checkpoint) return {};
  auto checkpoint = read_checkpoint(*options_.checkpoint);
  if (!checkpoint && checkpoint.error().code == ErrorCode::not_found) return {};
  FLEETFIT_TRY(checkpoint);
  const auto file = options_.checkpoint->string();
  FLEETFIT_ASSIGN(const auto document, core::parse_json(checkpoint->notes, file));
  const core::JsonView notes(document, file);
  FLEETFIT_ASSIGN(const auto training, notes.at("training"));
  FLEETFIT_TRY(check_identity(training.value(), identity(), file));
  FLEETFIT_ASSIGN(const auto place, core::read<Place>(notes));
  if (!put_numbers(checkpoint->numbers, all_of(network_, optimizer_, best_)))
    return refuse(file + " is of another network");
  place_ = place;
  resumed_at_ = static_cast<int>(place_.epoch);
  return {};
}

Result<TrainedClassifier> Trainer::run() {
  const auto left = steps() - place_.epoch * batches_of_epoch_ - place_.step;
  {
    core::ProgressTask progress(
        context_.progress,
        {.name = "train", .total = static_cast<std::uint64_t>(left * batch_), .unit = "images"});
    while (place_.epoch < options_.epochs && !is_stopped()) FLEETFIT_TRY(run_epoch(progress));
  }
  if (is_stopped()) FLEETFIT_TRY(save());
  if (place_.best_epoch > 0) copy_into(network_.state(), best_);
  TrainedClassifier trained{.graph = network_.graph(),
                            .validation_accuracy = std::max(place_.best, 0.0),
                            .loss = place_.last_loss,
                            .epochs = static_cast<int>(place_.epoch),
                            .best_epoch = static_cast<int>(place_.best_epoch),
                            .resumed_at = resumed_at_,
                            .images = data_.train.size()};
  const auto accuracy = accuracy_of(network_, data_.test, context_.stop);
  if (accuracy) trained.accuracy = *accuracy;
  if (!accuracy && accuracy.error().code != ErrorCode::cancelled)
    return tl::unexpected(accuracy.error());
  trained.interrupted = is_stopped();
  trained.elapsed_s = elapsed_s();
  return trained;
}

Result<Splits> load_splits(const ImageSplits& data, const ImageForm& form,
                           const ClassifierOptions& options, const TrainingContext& context) {
  const auto load = [&](const data::Dataset& split, std::int64_t limit) {
    return TorchImages::load(split,
                             {.form = form, .limit = limit, .device = device_of(options.compute)},
                             context.pool, context.stop);
  };
  FLEETFIT_ASSIGN(auto train, load(data.train, options.limit));
  FLEETFIT_ASSIGN(auto validation, load(data.validation, validation_images(options)));
  FLEETFIT_ASSIGN(auto test, load(data.test, 0));
  return Splits{std::move(train), std::move(validation), std::move(test)};
}

Result<TrainedClassifier> train(const graph::Graph& network, const ImageSplits& data,
                                const ClassifierOptions& options, const TrainingContext& context) {
  FLEETFIT_ASSIGN(const auto form, input_form(network));
  FLEETFIT_TRY(check_classes(network, data));
  FLEETFIT_TRY(check_available(options.compute));
  use_threads(context.pool.workers());
  at::globalContext().setDeterministicCuDNN(true);
  FLEETFIT_ASSIGN(auto learner, TorchNetwork::create(network, device_of(options.compute)));
  FLEETFIT_ASSIGN(const auto splits, load_splits(data, form, options, context));
  Trainer trainer(*learner, splits, options, context);
  FLEETFIT_TRY(trainer.take_up());
  return trainer.run();
}

}  // namespace

Result<TrainedClassifier> train_classifier(const graph::Graph& network, const ImageSplits& data,
                                           const ClassifierOptions& options,
                                           const TrainingContext& context) {
  return guarded([&] { return train(network, data, options, context); });
}

}  // namespace fleetfit::train
