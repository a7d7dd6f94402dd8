#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/picture.h"
#include "fleetfit/data/dataset.h"

namespace fleetfit::data {
namespace {

void append(const Picture& picture, const Preprocessing& options, std::vector<float>& values) {
  const auto value = [&](std::int64_t y, std::int64_t x, std::int64_t c) {
    const auto channel = static_cast<std::size_t>(c);
    const float mean = options.mean.empty() ? 0 : options.mean[channel];
    const float stddev = options.stddev.empty() ? 1 : options.stddev[channel];
    return (picture.at(y, x, c) * options.scale - mean) / stddev;
  };
  if (options.order == PixelOrder::nhwc) {
    for (std::int64_t y = 0; y < picture.height; ++y) {
      for (std::int64_t x = 0; x < picture.width; ++x) {
        for (std::int64_t c = 0; c < picture.channels; ++c) values.push_back(value(y, x, c));
      }
    }
    return;
  }
  for (std::int64_t c = 0; c < picture.channels; ++c) {
    for (std::int64_t y = 0; y < picture.height; ++y) {
      for (std::int64_t x = 0; x < picture.width; ++x) values.push_back(value(y, x, c));
    }
  }
}

Status append_labels(const Item& item, const Preprocessing& options,
                     std::vector<std::int64_t>& labels) {
  if (item.mask.empty()) {
    labels.push_back(item.label);
    return {};
  }
  if (std::ssize(item.mask) != item.image.height * item.image.width)
    return fail(ErrorCode::invalid_input,
                fmt::format("{} classes for the pixels of an image of {} x {}", item.mask.size(),
                            item.image.height, item.image.width));
  const auto mask = resized_mask(item, options.height, options.width);
  labels.insert(labels.end(), mask.begin(), mask.end());
  return {};
}

/// The options with the first image's size and channels where they leave them open.
Preprocessing completed(Preprocessing options, const Image& first) {
  if (options.height == 0) options.height = first.height;
  if (options.width == 0) options.width = first.width;
  if (options.channels == 0) options.channels = first.channels;
  return options;
}

Status check(const Preprocessing& options) {
  const auto refuse = [](std::string problem) {
    return fail(ErrorCode::invalid_input, "preprocessing: " + std::move(problem));
  };
  constexpr std::int64_t kMostExtent = 1 << 14;
  for (const auto extent : {options.height, options.width}) {
    if (extent < 1 || extent > kMostExtent)
      return refuse(fmt::format("an image of {} x {} pixels", options.width, options.height));
  }
  if (options.channels != 1 && options.channels != 3)
    return refuse(fmt::format("{} channels; known are 1 and 3", options.channels));
  const auto channels = static_cast<std::size_t>(options.channels);
  for (const auto* list : {&options.mean, &options.stddev}) {
    if (!list->empty() && list->size() != channels)
      return refuse(fmt::format("{} means or deviations for {} channels", list->size(), channels));
  }
  const auto usable = [](float stddev) { return std::isfinite(stddev) && stddev > 0; };
  if (!std::all_of(options.stddev.begin(), options.stddev.end(), usable))
    return refuse("a standard deviation is not positive");
  return {};
}

bool left_open(const Preprocessing& asked, const Preprocessing& used, const Image& image) {
  return (asked.height == 0 && image.height != used.height) ||
         (asked.width == 0 && image.width != used.width) ||
         (asked.channels == 0 && image.channels != used.channels);
}

}  // namespace

Result<Batch> make_batch(std::span<const Item> items, const Preprocessing& asked) {
  if (items.empty()) return fail(ErrorCode::invalid_input, "a batch without images");
  const auto options = completed(asked, items.front().image);
  FLEETFIT_TRY(check(options));
  Batch batch;
  const auto count = static_cast<std::int64_t>(items.size());
  const auto& [height, width, channels] = std::tie(options.height, options.width, options.channels);
  batch.shape = options.order == PixelOrder::nchw ? std::vector{count, channels, height, width}
                                                  : std::vector{count, height, width, channels};
  for (const auto& item : items) {
    if (left_open(asked, options, item.image))
      return fail(ErrorCode::invalid_input,
                  fmt::format("an image of {} x {} x {} beside others of {} x {} x {}: say which "
                              "size they are to have",
                              item.image.height, item.image.width, item.image.channels, height,
                              width, channels));
    append(resized(with_channels(item.image, channels), height, width), options, batch.values);
    if (item.mask.empty() != items.front().mask.empty())
      return fail(ErrorCode::invalid_input, "only some of the images have a class for each pixel");
    FLEETFIT_TRY(append_labels(item, options, batch.labels));
  }
  return batch;
}

Result<Batch> make_batch(const Dataset& data, std::span<const std::size_t> indices,
                         const Preprocessing& options) {
  std::vector<Item> items;
  for (const auto index : indices) {
    if (index >= data.size())
      return fail(ErrorCode::invalid_input,
                  fmt::format("there is no image {} of {}", index, data.size()));
    FLEETFIT_ASSIGN(auto item, data.item(index));
    items.push_back(std::move(item));
  }
  return make_batch(items, options);
}

}  // namespace fleetfit::data
