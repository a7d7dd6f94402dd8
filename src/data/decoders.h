#pragma once

#include <cstddef>
#include <span>

#include "fleetfit/data/image.h"

namespace fleetfit::data {

Result<Image> decode_bmp(std::span<const std::byte> bytes, const ImageLimits& limits);
Result<Image> decode_jpeg(std::span<const std::byte> bytes, const ImageLimits& limits);
Result<Image> decode_png(std::span<const std::byte> bytes, const ImageLimits& limits);

/// An image of this size without its pixels' values; `invalid_input` if it has none, or more than
/// the limit.
Result<Image> blank_image(std::int64_t height, std::int64_t width, std::int64_t channels,
                          const ImageLimits& limits);

}  // namespace fleetfit::data
