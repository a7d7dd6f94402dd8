#pragma once

#include <string>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/data/dataset.h"

namespace fleetfit::train {

/// Images that a test made up.
class MemoryDataset final : public data::Dataset {
 public:
  MemoryDataset(std::vector<data::Item> items, std::vector<std::string> classes)
      : items_(std::move(items)), classes_(std::move(classes)) {}

  std::size_t size() const override { return items_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<data::Item> item(std::size_t index) const override { return items_[index]; }
  const std::vector<data::Item>& items() const { return items_; }

 private:
  std::vector<data::Item> items_;
  std::vector<std::string> classes_;
};

inline data::Image noise(std::int64_t height, std::int64_t width, std::int64_t channels,
                         core::Random random) {
  data::Image image{.height = height, .width = width, .channels = channels, .pixels = {}};
  for (std::int64_t i = 0; i < height * width * channels; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
  return image;
}

/// Noise, labelled by number.
inline MemoryDataset noisy_images(std::size_t count, std::int64_t height, std::int64_t width,
                                  std::int64_t channels) {
  std::vector<data::Item> items;
  for (std::size_t i = 0; i < count; ++i) {
    items.push_back({.image = noise(height, width, channels, core::Random(i)),
                     .label = static_cast<std::int64_t>(i)});
  }
  return {std::move(items), std::vector<std::string>(count, "a number")};
}

}  // namespace fleetfit::train
