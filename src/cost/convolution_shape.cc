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

const Node* maker_of(const Graph& graph, TensorId id) {
  const auto made = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return std::ranges::find(node.outputs, id) != node.outputs.end();
  });
  return made == graph.nodes.end() ? nullptr : &*made;
}

bool is_static(const Graph& graph, TensorId id) {
  if (id == kNoTensor || graph.tensor(id).is_constant()) return true;
  const Node* maker = maker_of(graph, id);
  return maker != nullptr && !maker->inputs.empty() &&
         !std::holds_alternative<Unknown>(maker->op) &&
         std::ranges::all_of(maker->inputs, [&](TensorId in) { return is_static(graph, in); });
}

}  // namespace

bool static_input(const Graph& graph, const Node& node, std::size_t input) {
  return input < node.inputs.size() && node.inputs[input] != kNoTensor &&
         is_static(graph, node.inputs[input]);
}

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

}  // namespace fleetfit::cost
