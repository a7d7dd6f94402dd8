#include "train/elastify_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/torch_device.h"

namespace fleetfit::train {
namespace {

constexpr std::int64_t kValidationImages = 500;
constexpr std::int64_t kSampleImages = 2000;

Result<ImageForm> input_form(const elastic::Supernet& supernet) {
  const auto& first = supernet.blocks.front().branches.front().graph;
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: {}, so images cannot be its input", supernet.name, what));
  };
  if (first.inputs.size() != 1) return refuse(fmt::format("it has {} inputs", first.inputs.size()));
  const auto& input = first.tensor(first.inputs.front());
  if (input.dtype != graph::DType::f32 || !input.shape || input.shape->size() != 4)
    return refuse("its input is not float32 with four dimensions");
  const auto& shape = *input.shape;
  if (shape[1] != 1 && shape[1] != 3)
    return refuse(
        fmt::format("its input {} has neither 1 nor 3 channels", graph::to_string(shape)));
  return ImageForm{.channels = shape[1], .height = shape[2], .width = shape[3]};
}

Status check_classes(const elastic::Supernet& supernet, const data::Dataset& data) {
  const auto& last = supernet.blocks.back().branches.front().graph;
  const auto& output = last.tensor(last.outputs.front()).shape;
  if (!output || output->size() < 2)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: its output has no classes", supernet.name));
  if ((*output)[1] != std::ssize(data.classes()))
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: it tells {} classes apart, the data has {}", supernet.name,
                            (*output)[1], data.classes().size()));
  return {};
}

}  // namespace

std::int64_t training_images(const ElastifyOptions& options, const ImageSplits& images) {
  const auto all = static_cast<std::int64_t>(images.train.size());
  return options.limit > 0 ? std::min(options.limit, all) : all;
}

Result<LoadedImages> LoadedImages::load(const elastic::Supernet& supernet,
                                        const ImageSplits& images, const ElastifyOptions& options,
                                        const TrainingContext& context) {
  const auto form = input_form(supernet);
  if (!form) return tl::unexpected(form.error());
  if (auto fits = check_classes(supernet, images.train); !fits)
    return tl::unexpected(std::move(fits.error()));
  if (const auto count = training_images(options, images); count < options.batch)
    return fail(
        ErrorCode::invalid_input,
        fmt::format("there are {} images to learn from, a batch has {}", count, options.batch));
  const auto read = [&](const data::Dataset& data, std::int64_t limit) {
    return TorchImages::load(data,
                             {.form = *form, .limit = limit, .device = device_of(options.compute)},
                             context.pool, context.stop);
  };
  auto training = read(images.train, options.limit);
  if (!training) return tl::unexpected(std::move(training.error()));
  auto validation = read(images.validation, kValidationImages);
  if (!validation) return tl::unexpected(std::move(validation.error()));
  auto test = read(images.test, 0);
  if (!test) return tl::unexpected(std::move(test.error()));
  auto sample = read(images.test, kSampleImages);
  if (!sample) return tl::unexpected(std::move(sample.error()));
  return LoadedImages{*std::move(training), *std::move(validation), *std::move(test),
                      *std::move(sample)};
}

}  // namespace fleetfit::train
