#include "data/picture.h"

#include <algorithm>

namespace fleetfit::data {
namespace {

/// Where an output pixel's centre lies between two input pixels.
struct Between {
  std::int64_t low = 0;
  std::int64_t high = 0;
  float share = 0;  ///< of the higher one
};

std::vector<Between> samples(std::int64_t from, std::int64_t to) {
  std::vector<Between> result;
  const double step = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    const double place =
        std::clamp((static_cast<double>(i) + 0.5) * step - 0.5, 0.0, static_cast<double>(from - 1));
    const auto low = static_cast<std::int64_t>(place);
    result.push_back({.low = low,
                      .high = std::min(low + 1, from - 1),
                      .share = static_cast<float>(place - static_cast<double>(low))});
  }
  return result;
}

float mixed(float a, float b, float share) { return a + (b - a) * share; }

}  // namespace

Picture with_channels(const Image& image, std::int64_t channels) {
  Picture picture{.height = image.height, .width = image.width, .channels = channels};
  const auto count = static_cast<std::size_t>(image.height * image.width);
  picture.values.reserve(count * static_cast<std::size_t>(channels));
  for (std::size_t p = 0; p < count; ++p) {
    if (image.channels == channels) {
      for (std::int64_t c = 0; c < channels; ++c)
        picture.values.push_back(
            image.pixels[p * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)]);
    } else if (image.channels == 1) {
      picture.values.insert(picture.values.end(), 3, image.pixels[p]);
    } else {
      const auto* rgb = &image.pixels[p * 3];
      picture.values.push_back(0.299F * static_cast<float>(rgb[0]) +
                               0.587F * static_cast<float>(rgb[1]) +
                               0.114F * static_cast<float>(rgb[2]));
    }
  }
  return picture;
}

Picture resized(Picture picture, std::int64_t height, std::int64_t width) {
  if (picture.height == height && picture.width == width) return picture;
  Picture result{.height = height, .width = width, .channels = picture.channels};
  result.values.reserve(static_cast<std::size_t>(height * width * picture.channels));
  const auto columns = samples(picture.width, width);
  for (const auto& y : samples(picture.height, height)) {
    for (const auto& x : columns) {
      for (std::int64_t c = 0; c < picture.channels; ++c) {
        const float upper =
            mixed(picture.at(y.low, x.low, c), picture.at(y.low, x.high, c), x.share);
        const float lower =
            mixed(picture.at(y.high, x.low, c), picture.at(y.high, x.high, c), x.share);
        result.values.push_back(mixed(upper, lower, y.share));
      }
    }
  }
  return result;
}

std::vector<std::uint8_t> resized_mask(const Item& item, std::int64_t height, std::int64_t width) {
  const auto& image = item.image;
  if (image.height == height && image.width == width) return item.mask;
  std::vector<std::uint8_t> result;
  for (std::int64_t y = 0; y < height; ++y) {
    const auto row = (2 * y + 1) * image.height / (2 * height);
    for (std::int64_t x = 0; x < width; ++x) {
      const auto column = (2 * x + 1) * image.width / (2 * width);
      result.push_back(item.mask[static_cast<std::size_t>(row * image.width + column)]);
    }
  }
  return result;
}

}  // namespace fleetfit::data
