#include "cost/convolution_shape.h"

#include <algorithm>

#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::cost {
namespace {

using namespace graph;  // the operators

struct Attributes {
  const Window* window = nullptr;
  std::int64_t groups = 1;
  Layout layout = Layout::nchw;
};

std::optional<Attributes> attributes_of(const Operator& op) {
  if (const auto* conv = std::get_if<Conv>(&op)) {
    return Attributes{&conv->window, conv->groups, conv->layout};
  }
  if (const auto* conv = std::get_if<ConvTranspose>(&op)) {
    return Attributes{&conv->window, conv->groups, conv->layout};
  }
  return std::nullopt;
}

const Shape* shape_of(const Graph& graph, const std::vector<TensorId>& ids) {
  if (ids.empty() || ids.front() == kNoTensor) return nullptr;
  const auto& shape = graph.tensor(ids.front()).shape;
  return shape && shape->size() >= 3 ? &*shape : nullptr;
}

std::int64_t largest(const Ints& values) {
  return values.empty() ? 1 : *std::ranges::max_element(values);
}

/// The product of all spatial extents but the last.
std::int64_t height(const Ints& extents) {
  std::int64_t product = 1;
  for (std::size_t d = 0; d + 1 < extents.size(); ++d) product *= extents[d];
  return product;
}

std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

constexpr std::int64_t kSlice = 4;  // channels that a GPU reads at once
constexpr std::int64_t kTile = 4;   // pixels along one side of a Winograd tile

struct Quantity {
  std::string_view name;
  std::int64_t (*of)(const ConvolutionShape&);
};

constexpr Quantity kQuantities[] = {
    {"groups", [](const ConvolutionShape& s) { return s.groups; }},
    {"kernel_height", [](const ConvolutionShape& s) { return s.kernel_height; }},
    {"kernel_width", [](const ConvolutionShape& s) { return s.kernel_width; }},
    {"stride", [](const ConvolutionShape& s) { return s.stride; }},
    {"dilation", [](const ConvolutionShape& s) { return s.dilation; }},
    {"input_channels", [](const ConvolutionShape& s) { return s.input_channels; }},
    {"output_channels", [](const ConvolutionShape& s) { return s.output_channels; }},
    {"input_channels_per_group",
     [](const ConvolutionShape& s) { return s.input_channels / s.groups; }},
    {"output_channels_per_group",
     [](const ConvolutionShape& s) { return s.output_channels / s.groups; }},
    {"input_slices",
     [](const ConvolutionShape& s) { return divided_up(s.input_channels, kSlice); }},
    {"output_slices",
     [](const ConvolutionShape& s) { return divided_up(s.output_channels, kSlice); }},
    {"output_tiles",
     [](const ConvolutionShape& s) {
       return divided_up(s.output_height, kTile) * divided_up(s.output_width, kTile);
     }},
};

}  // namespace

std::optional<ConvolutionShape> convolution_shape(const Graph& graph, const Node& node) {
  const auto attributes = attributes_of(node.op);
  const Shape* in = shape_of(graph, node.inputs);
  const Shape* out = shape_of(graph, node.outputs);
  if (!attributes || in == nullptr || out == nullptr || attributes->window->kernel.empty()) {
    return std::nullopt;
  }
  const auto from = spatial_extents(*in, attributes->layout);
  const auto to = spatial_extents(*out, attributes->layout);
  const Ints& kernel = attributes->window->kernel;
  return ConvolutionShape{
      .groups = attributes->groups,
      .input_channels = (*in)[channel_axis(*in, attributes->layout)],
      .output_channels = (*out)[channel_axis(*out, attributes->layout)],
      .input_height = height(from),
      .input_width = from.back(),
      .output_height = height(to),
      .output_width = to.back(),
      .kernel_height = height(kernel),
      .kernel_width = kernel.back(),
      .stride = largest(attributes->window->strides),
      .dilation = largest(attributes->window->dilations),
  };
}

std::vector<std::string_view> quantity_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, read] : kQuantities) names.push_back(name);
  return names;
}

bool is_within(const Bound& bound, const Graph& graph, const Node& node) {
  const auto shape = convolution_shape(graph, node);
  const auto* known = std::ranges::find(kQuantities, bound.quantity, &Quantity::name);
  if (!shape || shape->groups < 1 || known == std::end(kQuantities)) return false;
  const std::int64_t value = known->of(*shape);
  return (!bound.is || value == *bound.is) && (!bound.at_least || value >= *bound.at_least) &&
         (!bound.at_most || value <= *bound.at_most) &&
         (!bound.multiple_of || value % *bound.multiple_of == 0);
}

}  // namespace fleetfit::cost
