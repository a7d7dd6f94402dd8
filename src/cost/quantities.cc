#include "cost/quantities.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cost/convolution_shape.h"

namespace fleetfit::cost {
namespace {

std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

constexpr std::int64_t kSlice = 4;  // channels that a GPU reads at once
constexpr std::int64_t kTile = 4;   // pixels along one side of a Winograd tile

using Quantity = std::int64_t (*)(const ConvolutionShape&);
using Shape = ConvolutionShape;

constexpr std::array<std::pair<std::string_view, Quantity>, 12> kQuantities{{
    {"groups", [](const Shape& s) { return s.groups; }},
    {"kernel_height", [](const Shape& s) { return s.kernel_height; }},
    {"kernel_width", [](const Shape& s) { return s.kernel_width; }},
    {"stride", [](const Shape& s) { return s.stride; }},
    {"dilation", [](const Shape& s) { return s.dilation; }},
    {"input_channels", [](const Shape& s) { return s.input_channels; }},
    {"output_channels", [](const Shape& s) { return s.output_channels; }},
    {"input_channels_per_group", [](const Shape& s) { return s.input_channels / s.groups; }},
    {"output_channels_per_group", [](const Shape& s) { return s.output_channels / s.groups; }},
    {"input_slices", [](const Shape& s) { return divided_up(s.input_channels, kSlice); }},
    {"output_slices", [](const Shape& s) { return divided_up(s.output_channels, kSlice); }},
    {"output_tiles",
     [](const Shape& s) {
       return divided_up(s.output_height, kTile) * divided_up(s.output_width, kTile);
     }},
}};

}  // namespace

std::vector<std::string_view> quantity_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, read] : kQuantities) names.push_back(name);
  return names;
}

bool is_quantity(std::string_view name) {
  return std::ranges::any_of(kQuantities, [&](const auto& known) { return known.first == name; });
}

std::optional<std::int64_t> quantity(std::string_view name, const graph::Graph& graph,
                                     const graph::Node& node) {
  const auto shape = convolution_shape(graph, node);
  if (!shape || shape->groups < 1) return std::nullopt;
  for (const auto& [known, read] : kQuantities) {
    if (known == name) return read(*shape);
  }
  return std::nullopt;
}

}  // namespace fleetfit::cost
