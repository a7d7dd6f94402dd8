#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/net_builder.h"

namespace fleetfit::train {

inline constexpr std::int64_t kTinyImage = 8;
inline constexpr std::int64_t kTinyChannels = 8;
inline constexpr std::int64_t kTinyClasses = 3;

/// Two convolutions with so many channels between them.
inline graph::Graph tiny_block(std::int64_t inner, std::uint64_t seed) {
  graph::NetBuilder net("block", seed);
  const auto x = net.input("x", {1, kTinyChannels, kTinyImage, kTinyImage});
  const auto y = net.conv_bn(x, {.out = inner, .kernel = 3}, graph::kRelu);
  net.output(net.conv_bn(y, {.out = kTinyChannels, .kernel = 3}, graph::kRelu), "y");
  return std::move(net).finish().value();
}

inline graph::Graph tiny_stem() {
  graph::NetBuilder net("stem", 1);
  const auto x = net.input("x", {1, 1, kTinyImage, kTinyImage});
  net.output(net.conv_bn(x, {.out = kTinyChannels, .kernel = 3}, graph::kRelu), "y");
  return std::move(net).finish().value();
}

inline graph::Graph tiny_head() {
  graph::NetBuilder net("head", 2);
  const auto x = net.input("x", {1, kTinyChannels, kTinyImage, kTinyImage});
  net.output(net.linear(net.flatten(x), kTinyClasses), "y");
  return std::move(net).finish().value();
}

/// A stem, three blocks with branches that know nothing yet, and a head.
inline elastic::Supernet tiny_supernet() {
  using enum elastic::BranchKind;
  elastic::Supernet supernet{.name = "tiny"};
  supernet.blocks.push_back({.name = "stem", .branches = {{.graph = tiny_stem()}}});
  for (std::uint64_t b = 1; b <= 3; ++b) {
    elastic::Block block{.name = "block " + std::to_string(b)};
    block.branches.push_back({.graph = tiny_block(kTinyChannels, 10 * b)});
    block.branches.push_back(
        {.kind = shrunk, .share = 0.25, .graph = tiny_block(kTinyChannels / 4, 10 * b + 1)});
    if (b < 3)
      block.branches.push_back(
          {.kind = merged, .span = 2, .graph = tiny_block(kTinyChannels, 10 * b + 2)});
    supernet.blocks.push_back(std::move(block));
  }
  supernet.blocks.push_back({.name = "head", .branches = {{.graph = tiny_head()}}});
  return supernet;
}

/// What the original makes of an image, worked out by the reference evaluator.
inline std::int64_t original_class(const elastic::Supernet& supernet, const data::Image& image) {
  std::vector<float> pixels;
  for (const auto pixel : image.pixels) pixels.push_back(static_cast<float>(pixel) / 255);
  graph::Value value{.shape = {1, 1, kTinyImage, kTinyImage},
                     .data = graph::TensorData::copy(pixels)};
  for (const auto& block : supernet.blocks)
    value = graph::evaluate(block.branches.front().graph, std::vector{value}).value().front();
  const auto scores = value.data.as<float>();
  return std::ranges::max_element(scores) - scores.begin();
}

/// Random images, bright and dark in each quarter, labelled by the original, which is therefore
/// always right.
class TinyImages final : public data::Dataset {
 public:
  TinyImages(const elastic::Supernet& supernet, std::size_t count, std::uint64_t seed,
             std::size_t classes = kTinyClasses)
      : classes_(classes, "class") {
    core::Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      data::Image image{.height = kTinyImage, .width = kTinyImage, .channels = 1};
      std::array<std::uint64_t, 4> brightness = {};
      for (auto& quarter : brightness) quarter = random.below(200);
      for (std::int64_t y = 0; y < kTinyImage; ++y) {
        for (std::int64_t x = 0; x < kTinyImage; ++x) {
          const auto quarter =
              static_cast<std::size_t>(y * 2 / kTinyImage * 2 + x * 2 / kTinyImage);
          image.pixels.push_back(static_cast<std::uint8_t>(brightness[quarter] + random.below(56)));
        }
      }
      const auto label = original_class(supernet, image);
      items_.push_back({.image = std::move(image), .label = label});
    }
  }

  std::size_t size() const override { return items_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<data::Item> item(std::size_t index) const override { return items_[index]; }

 private:
  std::vector<std::string> classes_;
  std::vector<data::Item> items_;
};

}  // namespace fleetfit::train
