#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::data {

/// Rows from top to bottom, pixels from left to right, channels together: grey (1) or red, green,
/// blue (3).
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::vector<std::uint8_t> pixels;

  bool operator==(const Image&) const = default;
};

struct ImageLimits {
  std::int64_t max_pixels = std::int64_t{1} << 26;  ///< refused before memory is taken for more
};

/// Reads PNG (all kinds; transparent pixels on black), JPEG (grey and colour) and BMP (24 bits, and
/// 8 bits with a palette, not compressed); the content decides the format. Files that are
/// broken or cut short are `invalid_input`, other kinds `unsupported`; the message names the file.
Result<Image> read_image(const std::filesystem::path& file, const ImageLimits& limits = {});

/// The same from memory.
Result<Image> decode_image(std::span<const std::byte> bytes, const ImageLimits& limits = {});

}  // namespace fleetfit::data
