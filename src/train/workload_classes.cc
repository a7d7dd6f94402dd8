#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/roll.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/parallel.h"
#include "fleetfit/data/recordings.h"
#include "fleetfit/data/texts.h"
#include "fleetfit/graph/task_networks.h"
#include "fleetfit/graph/zoo.h"
#include "train/torch/images.h"
#include "train/torch/parameters.h"
#include "train/workload_task.h"

/// Workloads that tell classes apart: images, sounds, texts.
namespace fleetfit::train {
namespace {

/// The samples of a split as inputs of a network with their classes.
class LabelledBatches {
 public:
  virtual ~LabelledBatches() = default;
  virtual std::int64_t size() const = 0;
  virtual Result<TorchBatch> batch(std::span<const std::int64_t> places) const = 0;
  /// The same for learning: the samples look a little different each time.
  virtual Result<TorchBatch> changed_batch(std::span<const std::int64_t> places,
                                           core::Random random) const = 0;
};

class ClassTask final : public WorkloadTask {
 public:
  ClassTask(std::unique_ptr<LabelledBatches> train, std::unique_ptr<LabelledBatches> validation)
      : train_(std::move(train)), validation_(std::move(validation)) {}

  std::int64_t size() const override { return train_->size(); }

  Result<at::Tensor> loss(TorchNetwork& network, std::span<const std::int64_t> places,
                          core::Random random) const override {
    FLEETFIT_ASSIGN(const auto batch, train_->changed_batch(places, random));
    return at::cross_entropy_loss(network.forward_one(batch.images), batch.labels);
  }

  Result<WorkloadScore> score(TorchNetwork& network, const std::stop_token& stop) const override {
    constexpr std::int64_t kBatch = 100;
    const at::NoGradGuard at_work;
    double right = 0;
    double loss = 0;
    const auto count = validation_->size();
    for (std::int64_t first = 0; first < count; first += kBatch) {
      if (stop.stop_requested()) return fail(ErrorCode::cancelled, "interrupted");
      auto places = core::counting(std::min(kBatch, count - first), first);
      FLEETFIT_ASSIGN(const auto batch, validation_->batch(places));
      const auto logits = network.forward_one(batch.images);
      right += logits.argmax(1).eq(batch.labels).sum().item<double>();
      loss += at::cross_entropy_loss(logits, batch.labels).item<double>() *
              static_cast<double>(places.size());
    }
    return WorkloadScore{.accuracy = right / static_cast<double>(count),
                         .loss = loss / static_cast<double>(count)};
  }

 private:
  std::unique_ptr<LabelledBatches> train_;
  std::unique_ptr<LabelledBatches> validation_;
};

PreparedWorkload prepared(graph::Graph network, std::unique_ptr<LabelledBatches> train,
                          std::unique_ptr<LabelledBatches> validation) {
  return {.network = std::move(network),
          .task = std::make_unique<ClassTask>(std::move(train), std::move(validation))};
}

// ---- Images

class ImageBatches final : public LabelledBatches {
 public:
  ImageBatches(std::unique_ptr<data::Dataset> data, TorchImages images, Augmentation augmentation)
      : data_(std::move(data)), images_(std::move(images)), augmentation_(augmentation) {}

  std::int64_t size() const override { return images_.size(); }
  Result<TorchBatch> batch(std::span<const std::int64_t> places) const override {
    return images_.batch(places);
  }
  Result<TorchBatch> changed_batch(std::span<const std::int64_t> places,
                                   core::Random random) const override {
    return images_.batch(places, augmentation_, random);
  }

 private:
  std::unique_ptr<data::Dataset> data_;  // which the images read from
  TorchImages images_;
  Augmentation augmentation_;
};

Result<std::unique_ptr<LabelledBatches>> load_images(std::unique_ptr<data::Dataset> data,
                                                     const workloads::Settings& settings,
                                                     std::int64_t limit,
                                                     const TrainingContext& context) {
  FLEETFIT_ASSIGN(const auto form, form_of(*data));
  FLEETFIT_ASSIGN(
      auto images,
      TorchImages::load(*data, {.form = form, .limit = limit, .device = device_of(settings)},
                        context.pool, context.stop));
  constexpr std::int64_t kShift = 2;
  // Digits and letters, which such files mostly hold, are others the other way round.
  const bool flip = !settings.text("data").starts_with("idx:");
  return std::make_unique<ImageBatches>(std::move(data), std::move(images),
                                        Augmentation{.shift = kShift, .flip = flip});
}

/// A Dropout in front of the last layer.
void add_dropout(graph::Graph& network) {
  auto& last = network.nodes.back();
  auto dropped = network.tensor(last.inputs[0]);
  dropped.name += ".dropped";
  const auto before = last.inputs[0];
  const auto id = network.add_tensor(std::move(dropped));
  last.inputs[0] = id;
  network.nodes.insert(network.nodes.end() - 1, graph::Node{.name = "Dropout_0",
                                                            .op = graph::Dropout{},
                                                            .inputs = {before},
                                                            .outputs = {id},
                                                            .activation = {}});
}

Result<graph::Graph> build_resnet(const workloads::Settings& settings, const data::Dataset& data) {
  FLEETFIT_ASSIGN(const auto form, form_of(data));
  auto network =
      graph::build_zoo_network(fmt::format("resnet{}_small", settings.integer("layers")),
                               {.width = settings.number("width"),
                                .classes = static_cast<std::int64_t>(data.classes().size()),
                                .image = std::max(form.height, form.width),
                                .channels = form.channels,
                                .seed = static_cast<std::uint64_t>(settings.integer("seed"))});
  if (network) add_dropout(*network);
  return network;
}

// ---- Inputs that are ready, one after the other

class TensorBatches final : public LabelledBatches {
 public:
  /// Inputs are shifted along their last dimension by up to `shift` while learning.
  TensorBatches(at::Tensor inputs, at::Tensor labels, std::int64_t shift)
      : inputs_(std::move(inputs)), labels_(std::move(labels)), shift_(shift) {}

  std::int64_t size() const override { return inputs_.size(0); }

  Result<TorchBatch> batch(std::span<const std::int64_t> places) const override {
    const auto indices = tensor_of(places).to(inputs_.device());
    return TorchBatch{.images = inputs_.index_select(0, indices),
                      .labels = labels_.index_select(0, indices)};
  }

  Result<TorchBatch> changed_batch(std::span<const std::int64_t> places,
                                   core::Random random) const override {
    auto plain = batch(places);
    if (!plain || shift_ == 0) return plain;
    plain->images = at::roll(plain->images, random.between(-shift_, shift_), -1);
    return plain;
  }

 private:
  at::Tensor inputs_;
  at::Tensor labels_;
  std::int64_t shift_;
};

// ---- Sounds

constexpr std::int64_t kSoundRate = 8000;

Result<std::unique_ptr<LabelledBatches>> load_sounds(const data::Recordings& recordings,
                                                     const std::vector<std::size_t>& chosen,
                                                     const workloads::Settings& settings,
                                                     const TrainingContext& context) {
  const auto length = settings.integer("length");
  const auto count = std::ssize(chosen);
  auto inputs = at::empty({count, 1, 1, length}, at::kFloat);
  std::vector<std::int64_t> labels(chosen.size());
  auto* const values = inputs.data_ptr<float>();
  const auto put = [&](std::size_t i) -> Status {
    FLEETFIT_ASSIGN(const auto item, recordings.item(chosen[i]));
    const auto samples = data::fit_length(data::resample(item.sound, kSoundRate).samples,
                                          static_cast<std::size_t>(length));
    std::ranges::copy(samples, values + static_cast<std::int64_t>(i) * length);
    labels[i] = item.label;
    return {};
  };
  FLEETFIT_TRY(core::try_each(context.pool, chosen.size(), put, context.stop));
  const auto device = device_of(settings);
  constexpr std::int64_t kShiftShare = 20;
  return std::make_unique<TensorBatches>(
      inputs.to(device), tensor_of(std::span<const std::int64_t>(labels)).to(device),
      length / kShiftShare);
}

// ---- Texts

std::unique_ptr<LabelledBatches> encode(const data::Texts& texts,
                                        const std::vector<std::size_t>& chosen,
                                        const data::Vocabulary& vocabulary,
                                        const workloads::Settings& settings) {
  const auto length = settings.integer("length");
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> labels;
  for (const auto i : chosen) {
    const auto words = vocabulary.encode(texts.texts[i], static_cast<std::size_t>(length));
    numbers.insert(numbers.end(), words.begin(), words.end());
    labels.push_back(texts.labels[i]);
  }
  const auto device = device_of(settings);
  const auto inputs = tensor_of(std::span<const std::int64_t>(numbers));
  return std::make_unique<TensorBatches>(
      inputs.reshape({std::ssize(chosen), length}).to(device),
      tensor_of(std::span<const std::int64_t>(labels)).to(device), 0);
}

}  // namespace

Result<PreparedWorkload> prepare_images(const workloads::Settings& settings,
                                        const TrainingContext& context) {
  const auto& spec = settings.text("data");
  FLEETFIT_ASSIGN(auto train, data::open_dataset(spec, data::Split::train));
  FLEETFIT_ASSIGN(auto validation, data::open_dataset(spec, data::Split::validation));
  FLEETFIT_ASSIGN(auto network, build_resnet(settings, *train));
  FLEETFIT_ASSIGN(auto learned,
                  load_images(std::move(train), settings, settings.integer("limit"), context));
  FLEETFIT_ASSIGN(auto judged, load_images(std::move(validation), settings,
                                           validation_limit(settings), context));
  return prepared(std::move(network), std::move(learned), std::move(judged));
}

Result<PreparedWorkload> prepare_sounds(const workloads::Settings& settings,
                                        const TrainingContext& context) {
  const auto& spec = settings.text("data");
  FLEETFIT_ASSIGN(const auto train, data::open_recordings(spec, data::Split::train));
  FLEETFIT_ASSIGN(const auto validation, data::open_recordings(spec, data::Split::validation));
  FLEETFIT_ASSIGN(auto network,
                  graph::build_m5({.length = settings.integer("length"),
                                   .channels = settings.integer("embedded_dim"),
                                   .stride = settings.integer("stride"),
                                   .classes = std::ssize(train->classes()),
                                   .seed = static_cast<std::uint64_t>(settings.integer("seed"))}));
  FLEETFIT_ASSIGN(auto learned,
                  load_sounds(*train, limited(train->size(), settings), settings, context));
  auto all = core::counting(validation->size());
  FLEETFIT_ASSIGN(auto judged, load_sounds(*validation, all, settings, context));
  return prepared(std::move(network), std::move(learned), std::move(judged));
}

Result<PreparedWorkload> prepare_texts(const workloads::Settings& settings,
                                       const std::string& folder) {
  const auto& spec = settings.text("data");
  FLEETFIT_ASSIGN(const auto train, data::open_texts(spec, data::Split::train));
  FLEETFIT_ASSIGN(const auto validation, data::open_texts(spec, data::Split::validation));
  FLEETFIT_ASSIGN(
      auto network,
      graph::build_text_rnn({.length = settings.integer("length"),
                             .vocabulary = settings.integer("vocabulary"),
                             .embedding = settings.integer("embedding"),
                             .hidden = settings.integer("hidden"),
                             .stride = settings.integer("stride"),
                             .classes = std::ssize(train.classes),
                             .seed = static_cast<std::uint64_t>(settings.integer("seed"))}));
  const auto vocabulary = data::Vocabulary::most_frequent(
      train.texts, static_cast<std::size_t>(settings.integer("vocabulary")));
  const auto file = std::filesystem::path(folder) / "vocabulary.txt";
  FLEETFIT_TRY(core::write_file(file, vocabulary.text()));
  auto all = core::counting(validation.texts.size());
  return prepared(std::move(network),
                  encode(train, limited(train.texts.size(), settings), vocabulary, settings),
                  encode(validation, all, vocabulary, settings));
}

at::Device device_of(const workloads::Settings& settings) {
  return settings.text("compute") == "cuda" ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

std::vector<std::size_t> limited(std::size_t count, const workloads::Settings& settings) {
  const auto limit = static_cast<std::size_t>(settings.integer("limit"));
  auto chosen = core::counting(count);
  if (limit == 0 || limit >= count) return chosen;
  constexpr std::uint64_t kAlwaysTheSame = 1;
  core::Random(kAlwaysTheSame).shuffle(chosen);
  chosen.resize(limit);
  std::ranges::sort(chosen);
  return chosen;
}

std::int64_t validation_limit(const workloads::Settings& settings) {
  constexpr std::int64_t kLeast = 500;
  const auto limit = settings.integer("limit");
  return limit > 0 ? std::max(limit / 4, kLeast) : 0;
}

}  // namespace fleetfit::train
