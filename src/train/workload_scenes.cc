#include <ATen/core/grad_mode.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/parallel.h"
#include "fleetfit/data/scenes.h"
#include "fleetfit/graph/task_networks.h"
#include "train/quality.h"
#include "train/torch/parameters.h"
#include "train/workload_task.h"

/// The workload that finds things in scenes.
namespace fleetfit::train {
namespace {

constexpr auto kCell = graph::kYoloCell;
constexpr double kUsualBox = graph::kYoloBoxPixels;

/// Scenes of one size: N x channels x size x size, bytes.
struct SceneSet {
  at::Tensor images;
  std::vector<std::vector<data::SceneObject>> objects;

  std::int64_t size() const { return std::ssize(objects); }
};

/// What the network should say of a batch.
struct Targets {
  at::Tensor presence;  ///< N x grid x grid: 1 where something has its centre
  at::Tensor boxes;     ///< N x 4 x grid x grid: centre in the cell, logarithms of the size
  at::Tensor labels;    ///< N x grid x grid; kNothing elsewhere
};

constexpr std::int64_t kNothing = -100;  // what cross_entropy_loss ignores

struct Center {
  std::int64_t row = 0;
  std::int64_t column = 0;
  double x = 0;  ///< in its cell, 0 to 1
  double y = 0;
};

Center center_of(const data::SceneObject& object, std::int64_t grid) {
  const double x = static_cast<double>(object.left + object.right) / (2.0 * kCell);
  const double y = static_cast<double>(object.top + object.bottom) / (2.0 * kCell);
  Center center{.row = std::clamp<std::int64_t>(static_cast<std::int64_t>(y), 0, grid - 1),
                .column = std::clamp<std::int64_t>(static_cast<std::int64_t>(x), 0, grid - 1)};
  center.x = x - static_cast<double>(center.column);
  center.y = y - static_cast<double>(center.row);
  return center;
}

float log_share(std::int64_t pixels) {
  return static_cast<float>(
      std::log(static_cast<double>(std::max<std::int64_t>(pixels, 1)) / kUsualBox));
}

Targets targets_of(const SceneSet& scenes, std::span<const std::int64_t> places,
                   const at::Device& device) {
  const auto count = std::ssize(places);
  const auto grid = scenes.images.size(2) / kCell;
  auto presence = at::zeros({count, grid, grid}, at::kFloat);
  auto boxes = at::zeros({count, 4, grid, grid}, at::kFloat);
  auto labels = at::full({count, grid, grid}, kNothing, at::kLong);
  auto* const present = presence.data_ptr<float>();
  auto* const box = boxes.data_ptr<float>();
  auto* const label = labels.data_ptr<std::int64_t>();
  for (std::int64_t n = 0; n < count; ++n) {
    for (const auto& object :
         scenes.objects[static_cast<std::size_t>(places[static_cast<std::size_t>(n)])]) {
      const auto center = center_of(object, grid);
      const auto cell = center.row * grid + center.column;
      present[n * grid * grid + cell] = 1;
      label[n * grid * grid + cell] = object.label;
      const std::array<float, 4> wanted{static_cast<float>(center.x), static_cast<float>(center.y),
                                        log_share(object.right - object.left),
                                        log_share(object.bottom - object.top)};
      for (std::int64_t i = 0; i < 4; ++i)
        box[(n * 4 + i) * grid * grid + cell] = wanted[static_cast<std::size_t>(i)];
    }
  }
  return {.presence = presence.to(device), .boxes = boxes.to(device), .labels = labels.to(device)};
}

/// For each image: whether there is something, where, and what. Of each the sum over cells.
at::Tensor loss_of(const at::Tensor& cells, const Targets& targets) {
  constexpr std::int64_t kSum = 2;
  constexpr double kWeightOfBoxes = 5;
  const auto present =
      at::binary_cross_entropy_with_logits(cells.select(1, 0), targets.presence, {}, {}, kSum);
  const auto mask = targets.presence.unsqueeze(1);
  const auto centers = cells.slice(1, 1, 3).sigmoid().sub(targets.boxes.slice(1, 0, 2));
  const auto sizes = cells.slice(1, 3, 5).sub(targets.boxes.slice(1, 2, 4));
  const auto boxes = centers.square().add(sizes.square()).mul(mask).sum();
  const auto labels = at::cross_entropy_loss(cells.slice(1, 5), targets.labels, {}, kSum, kNothing);
  return present.add(boxes, kWeightOfBoxes).add(labels).div(static_cast<double>(cells.size(0)));
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Reads the cells of one image.
class CellReader {
 public:
  CellReader(const float* cells, std::int64_t grid, std::int64_t classes)
      : cells_(cells), grid_(grid), classes_(classes) {}

  std::vector<Detection> read() const {
    constexpr double kLeastSure = 0.02;
    std::vector<Detection> found;
    for (std::int64_t cell = 0; cell < grid_ * grid_; ++cell) {
      auto detection = read_cell(cell);
      if (detection.confidence >= kLeastSure) found.push_back(detection);
    }
    return suppress_doubles(std::move(found), 0.5);
  }

 private:
  double at(std::int64_t channel, std::int64_t cell) const {
    return cells_[channel * grid_ * grid_ + cell];
  }

  Detection read_cell(std::int64_t cell) const {
    const std::int64_t row = cell / grid_;
    const std::int64_t column = cell % grid_;
    const double x = (static_cast<double>(column) + sigmoid(at(1, cell))) * kCell;
    const double y = (static_cast<double>(row) + sigmoid(at(2, cell))) * kCell;
    constexpr double kMostLog = 6;
    const double half_width = kUsualBox * std::exp(std::min(at(3, cell), kMostLog)) / 2;
    const double half_height = kUsualBox * std::exp(std::min(at(4, cell), kMostLog)) / 2;
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < classes_; ++k)
      if (at(5 + k, cell) > at(5 + best, cell)) best = k;
    double sum = 0;
    for (std::int64_t k = 0; k < classes_; ++k)
      sum += std::exp(at(5 + k, cell) - at(5 + best, cell));
    return {.box = {.left = x - half_width,
                    .top = y - half_height,
                    .right = x + half_width,
                    .bottom = y + half_height},
            .label = best,
            .confidence = sigmoid(at(0, cell)) / sum};
  }

  const float* cells_;
  std::int64_t grid_;
  std::int64_t classes_;
};

std::vector<TrueBox> boxes_of(const std::vector<data::SceneObject>& objects) {
  std::vector<TrueBox> boxes;
  for (const auto& object : objects)
    boxes.push_back({.box = {.left = static_cast<double>(object.left),
                             .top = static_cast<double>(object.top),
                             .right = static_cast<double>(object.right),
                             .bottom = static_cast<double>(object.bottom)},
                     .label = object.label});
  return boxes;
}

class SceneTask final : public WorkloadTask {
 public:
  SceneTask(SceneSet train, SceneSet validation, std::int64_t classes)
      : train_(std::move(train)), validation_(std::move(validation)), classes_(classes) {}

  std::int64_t size() const override { return train_.size(); }

  Result<at::Tensor> loss(TorchNetwork& network, std::span<const std::int64_t> places,
                          core::Random /*random*/) const override {
    const auto device = train_.images.device();
    return loss_of(network.forward_one(inputs_of(train_, places)),
                   targets_of(train_, places, device));
  }

  Result<WorkloadScore> score(TorchNetwork& network, const std::stop_token& stop) const override {
    constexpr std::int64_t kBatch = 50;
    const at::NoGradGuard at_work;
    std::vector<Judged> judged;
    double loss = 0;
    const auto count = validation_.size();
    for (std::int64_t first = 0; first < count; first += kBatch) {
      if (stop.stop_requested()) return fail(ErrorCode::cancelled, "interrupted");
      auto places = core::counting(std::min(kBatch, count - first), first);
      const auto cells = network.forward_one(inputs_of(validation_, places));
      const auto targets = targets_of(validation_, places, validation_.images.device());
      loss += loss_of(cells, targets).item<double>() * static_cast<double>(places.size());
      judge(cells.to(at::kCPU).contiguous(), places, judged);
    }
    constexpr double kLeastOverlap = 0.5;
    return WorkloadScore{.accuracy = mean_average_precision(judged, classes_, kLeastOverlap),
                         .loss = loss / static_cast<double>(count)};
  }

 private:
  static at::Tensor inputs_of(const SceneSet& scenes, std::span<const std::int64_t> places) {
    constexpr double kMostOfByte = 255;
    const auto indices = tensor_of(places).to(scenes.images.device());
    return scenes.images.index_select(0, indices).to(at::kFloat).div(kMostOfByte);
  }

  void judge(const at::Tensor& cells, const std::vector<std::int64_t>& places,
             std::vector<Judged>& judged) const {
    const auto grid = cells.size(2);
    const auto* first = cells.data_ptr<float>();
    for (std::size_t n = 0; n < places.size(); ++n) {
      const CellReader reader(first + static_cast<std::int64_t>(n) * (5 + classes_) * grid * grid,
                              grid, classes_);
      judged.push_back(
          {.found = reader.read(),
           .there = boxes_of(validation_.objects[static_cast<std::size_t>(places[n])])});
    }
  }

  SceneSet train_;
  SceneSet validation_;
  std::int64_t classes_;
};

Result<SceneSet> compose(const data::Scenes& scenes, std::int64_t size,
                         const workloads::Settings& settings, const TrainingContext& context) {
  FLEETFIT_ASSIGN(const auto first, scenes.scene(0));
  const auto channels = first.image.channels;
  const auto count = scenes.size();
  SceneSet set{
      .images = at::empty({static_cast<std::int64_t>(count), size, size, channels}, at::kByte),
      .objects = std::vector<std::vector<data::SceneObject>>(count)};
  auto* const pixels = set.images.data_ptr<std::uint8_t>();
  const auto put = [&](std::size_t i) -> Status {
    FLEETFIT_ASSIGN(const auto scene, scenes.scene(i));
    std::ranges::copy(scene.image.pixels,
                      pixels + static_cast<std::int64_t>(i) * size * size * channels);
    set.objects[i] = scene.objects;
    return {};
  };
  FLEETFIT_TRY(core::try_each(context.pool, count, put, context.stop));
  set.images = set.images.permute({0, 3, 1, 2}).contiguous().to(device_of(settings));
  return set;
}

}  // namespace

Result<PreparedWorkload> prepare_scenes(const workloads::Settings& settings,
                                        const TrainingContext& context) {
  const auto size = settings.integer("size");
  // Always the same scenes: trials are to be compared.
  data::SceneOptions options{
      .size = size, .count = static_cast<std::size_t>(settings.integer("limit")), .seed = 1};
  const auto& spec = settings.text("data");
  FLEETFIT_ASSIGN(const auto train, data::open_scenes(spec, data::Split::train, options));
  options.count = static_cast<std::size_t>(validation_limit(settings));
  FLEETFIT_ASSIGN(const auto validation, data::open_scenes(spec, data::Split::validation, options));
  FLEETFIT_ASSIGN(auto learned, compose(train, size, settings, context));
  FLEETFIT_ASSIGN(auto judged, compose(validation, size, settings, context));
  const auto classes = std::ssize(train.classes());
  FLEETFIT_ASSIGN(
      auto network,
      graph::build_small_yolo({.size = size,
                               .channels = learned.images.size(1),
                               .width = settings.number("width"),
                               .classes = classes,
                               .seed = static_cast<std::uint64_t>(settings.integer("seed"))}));
  return PreparedWorkload{
      .network = std::move(network),
      .task = std::make_unique<SceneTask>(std::move(learned), std::move(judged), classes)};
}

}  // namespace fleetfit::train
