#include "fleetfit/data/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/decoders.h"
#include "fleetfit/core/file.h"

namespace fleetfit::data {
namespace {

template <std::size_t n>
bool starts_with(std::span<const std::byte> bytes, const std::array<unsigned, n>& magic) {
  return bytes.size() >= n &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](unsigned a, std::byte b) { return a == std::to_integer<unsigned>(b); });
}

constexpr std::array<unsigned, 8> kPng{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::array<unsigned, 3> kJpeg{0xff, 0xd8, 0xff};
constexpr std::array<unsigned, 2> kBmp{'B', 'M'};

}  // namespace

Result<Image> blank_image(std::int64_t height, std::int64_t width, std::int64_t channels,
                          const ImageLimits& limits) {
  if (height <= 0 || width <= 0)
    return fail(ErrorCode::invalid_input, fmt::format("an image of {} x {} pixels", width, height));
  if (height > limits.max_pixels / width)
    return fail(ErrorCode::invalid_input,
                fmt::format("an image of {} x {} pixels is larger than {} pixels", width, height,
                            limits.max_pixels));
  Image image{.height = height, .width = width, .channels = channels};
  image.pixels.resize(static_cast<std::size_t>(height * width * channels));
  return image;
}

Result<Image> decode_image(std::span<const std::byte> bytes, const ImageLimits& limits) {
  if (starts_with(bytes, kPng)) return decode_png(bytes, limits);
  if (starts_with(bytes, kJpeg)) return decode_jpeg(bytes, limits);
  if (starts_with(bytes, kBmp)) return decode_bmp(bytes, limits);
  return fail(ErrorCode::unsupported, "no PNG, JPEG or BMP image");
}

Result<Image> read_image(const std::filesystem::path& file, const ImageLimits& limits) {
  FLEETFIT_ASSIGN(const auto content, core::read_file(file));
  FLEETFIT_ASSIGN(
      auto image,
      core::within(file.string(), decode_image(std::as_bytes(std::span(content)), limits)));
  return image;
}

}  // namespace fleetfit::data
