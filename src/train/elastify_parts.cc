#include "train/elastify_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/train/segmentation.h"
#include "train/torch/border.h"

namespace fleetfit::train {
namespace {

constexpr std::int64_t kValidationImages = 500;
constexpr std::int64_t kSampleImages = 2000;

Result<ImageForm> input_form(const elastic::Supernet& supernet) {
  const auto& first = supernet.blocks.front().branches.front().graph;
  const auto misfit = [&](const std::string& what) {
    return refuse(fmt::format("{}: {}, so images cannot be its input", supernet.name, what));
  };
  if (first.inputs.size() != 1) return misfit(fmt::format("it has {} inputs", first.inputs.size()));
  const auto& input = first.tensor(first.inputs.front());
  if (input.dtype != graph::DType::f32 || !input.shape || input.shape->size() != 4)
    return misfit("its input is not float32 with four dimensions");
  const auto& shape = *input.shape;
  if (shape[1] != 1 && shape[1] != 3)
    return misfit(
        fmt::format("its input {} has neither 1 nor 3 channels", graph::to_string(shape)));
  return ImageForm{.channels = shape[1], .height = shape[2], .width = shape[3]};
}

Status check_classes(const elastic::Supernet& supernet, const data::Dataset& data) {
  const auto& last = supernet.blocks.back().branches.front().graph;
  const auto& output = last.tensor(last.outputs.front()).shape;
  if (!output || output->size() < 2)
    return refuse(fmt::format("{}: its output has no classes", supernet.name));
  if ((*output)[1] != std::ssize(data.classes()))
    return refuse(fmt::format("{}: it knows {} classes, the data has {}", supernet.name,
                              (*output)[1], data.classes().size()));
  const auto& first = supernet.blocks.front().branches.front().graph;
  return core::within(supernet.name, check_label_form(first.tensor(first.inputs.front()),
                                                      last.tensor(last.outputs.front()), data));
}

Status check_count(std::int64_t count, const ElastifyOptions& options) {
  if (count >= options.batch) return {};
  return refuse(
      fmt::format("there are {} images to learn from, a batch has {}", count, options.batch));
}

}  // namespace

std::int64_t training_images(const ElastifyOptions& options, const ImageSplits& images) {
  const auto all = static_cast<std::int64_t>(images.train.size());
  return options.limit > 0 ? std::min(options.limit, all) : all;
}

Result<LoadedImages> LoadedImages::load(const elastic::Supernet& supernet,
                                        const ImageSplits& images, const ElastifyOptions& options,
                                        const TrainingContext& context) {
  FLEETFIT_ASSIGN(const auto form, input_form(supernet));
  FLEETFIT_TRY(check_classes(supernet, images.train));
  FLEETFIT_TRY(check_count(training_images(options, images), options));
  const auto read = [&](const data::Dataset& data, std::int64_t limit) {
    return TorchImages::load(data,
                             {.form = form, .limit = limit, .device = device_of(options.compute)},
                             context.pool, context.stop);
  };
  FLEETFIT_ASSIGN(auto training, read(images.train, options.limit));
  FLEETFIT_ASSIGN(auto validation, read(images.validation, kValidationImages));
  FLEETFIT_ASSIGN(auto test, read(images.test, 0));
  FLEETFIT_ASSIGN(auto sample, read(images.test, kSampleImages));
  return LoadedImages{.training = std::move(training),
                      .first = std::nullopt,
                      .validation = std::move(validation),
                      .test = std::move(test),
                      .sample = std::move(sample)};
}

Status LoadedImages::load_first(const std::function<bool(const ImageForm&)>& takes,
                                const ElastifyOptions& options, const TrainingContext& context) {
  if (options.first_data == nullptr) return {};
  FLEETFIT_ASSIGN(auto form, form_of(*options.first_data));
  form.channels = training.form().channels;
  FLEETFIT_ASSIGN(auto images, TorchImages::load(*options.first_data,
                                                 {.form = takes(form) ? form : training.form(),
                                                  .limit = options.limit,
                                                  .device = device_of(options.compute)},
                                                 context.pool, context.stop));
  FLEETFIT_TRY(check_count(images.size(), options));
  first = std::move(images);
  return {};
}

core::Fields fields_of(const RangeAccuracy*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(RangeAccuracy, low, high, mean, subnets),
      core::field<&RangeAccuracy::mean_iou>("mean_iou").omit_default()};
  return {.all = kAll};
}

core::Fields fields_of(const ElastifyEpoch*) {
  static constexpr core::Field kAll[] = {core::field<&ElastifyEpoch::stage>("stage"),
                                         core::field<&ElastifyEpoch::epoch>("epoch").from(0),
                                         FLEETFIT_MEMBERS(ElastifyEpoch, loss, validation)};
  return {.all = kAll};
}

core::Fields fields_of(const ElastifyPlace*) {
  static constexpr core::Field kAll[] = {
      core::field<&ElastifyPlace::subject>("elastification"),
      core::field<&ElastifyPlace::stage>("stage"),
      core::field<&ElastifyPlace::epoch>("epoch").from(0),
      core::field<&ElastifyPlace::step>("step").from(0),
      FLEETFIT_MEMBERS(ElastifyPlace, loss_sum, elapsed_s, epochs)};
  return {.all = kAll};
}

std::string to_notes(const ElastifyPlace& place) {
  return core::format_json_line(core::to_json<nlohmann::json>(place));
}

Result<ElastifyPlace> read_notes(const std::string& notes, const std::string& name) {
  FLEETFIT_ASSIGN(const auto document, core::parse_json(notes, name));
  return core::read<ElastifyPlace>(core::JsonView(document, name));
}

}  // namespace fleetfit::train
