#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fleetfit/data/dataset.h"

namespace fleetfit::data {

/// An image of real numbers, channels together.
struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::vector<float> values;

  float at(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
};

/// Grey is copied to three channels, colours are weighed to grey.
Picture with_channels(const Image& image, std::int64_t channels);

/// Stretched: bilinear, between pixel centres, without a filter.
Picture resized(Picture picture, std::int64_t height, std::int64_t width);

/// The item's mask stretched: of each pixel the class of the nearest one.
std::vector<std::uint8_t> resized_mask(const Item& item, std::int64_t height, std::int64_t width);

}  // namespace fleetfit::data
