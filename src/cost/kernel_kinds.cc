#include <algorithm>
#include <array>

#include "cost/convolution_shape.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/operator_facts.h"

namespace fleetfit::cost {
namespace {

using graph::Graph;
using graph::Node;

constexpr std::array<std::string_view, 21> kKinds{
    "conv2d",          "winograd", "grouped_conv2d", "depthwise_conv2d", "transposed_conv2d",
    "fully_connected", "matmul",   "normalization",  "softmax",          "mean",
    "reduce",          "pooling",  "resize",         "gather",           "transpose",
    "concat",          "split",    "padding",        "elementwise",      "quantize",
    "reshape"};

/// The above with "other" at the end.
constexpr auto kAllKinds = [] {
  std::array<std::string_view, kKinds.size() + 1> all{};
  std::copy(kKinds.begin(), kKinds.end(), all.begin());
  all.back() = "other";
  return all;
}();

std::string_view convolution_kind(const Graph& graph, const Node& node) {
  const auto shape = convolution_shape(graph, node);
  if (!shape || shape->groups == 1) return "conv2d";
  return shape->input_channels == shape->groups ? "depthwise_conv2d" : "grouped_conv2d";
}

}  // namespace

std::span<const std::string_view> kernel_kinds() { return kAllKinds; }

std::string_view plain_kind(const Graph& graph, const Node& node) {
  const auto kind = kernel_kind(node.op);
  if (kind == "conv2d") return convolution_kind(graph, node);
  // A product is a layer only with weights that are known beforehand.
  if (kind == "fully_connected" && !static_input(graph, node, 1)) return "matmul";
  return kind;
}

}  // namespace fleetfit::cost
