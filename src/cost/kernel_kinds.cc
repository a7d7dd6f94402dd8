#include <algorithm>
#include <array>

#include "cost/convolution_shape.h"
#include "fleetfit/cost/kernels.h"

namespace fleetfit::cost {
namespace {

using namespace graph;  // the operators, which this file is all about

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

struct PlainKind {
  const Graph& graph;
  const Node& node;

  std::string_view operator()(const Conv&) const {
    const auto shape = convolution_shape(graph, node);
    if (!shape || shape->groups == 1) return "conv2d";
    return shape->input_channels == shape->groups ? "depthwise_conv2d" : "grouped_conv2d";
  }
  std::string_view operator()(const ConvTranspose&) const { return "transposed_conv2d"; }
  std::string_view operator()(const Gemm&) const { return product_kind(); }
  std::string_view operator()(const MatMul&) const { return product_kind(); }
  std::string_view operator()(const MultiHeadAttention&) const { return "matmul"; }
  std::string_view operator()(const BatchNorm&) const { return "normalization"; }
  std::string_view operator()(const InstanceNorm&) const { return "normalization"; }
  std::string_view operator()(const LayerNorm&) const { return "normalization"; }
  std::string_view operator()(const Lrn&) const { return "normalization"; }
  std::string_view operator()(const LpNormalization&) const { return "normalization"; }
  std::string_view operator()(const Pool&) const { return "pooling"; }
  std::string_view operator()(const GlobalPool& op) const {
    return op.kind == PoolKind::average ? "mean" : "reduce";
  }
  std::string_view operator()(const Softmax&) const { return "softmax"; }
  std::string_view operator()(const Reduce& op) const {
    return op.kind == ReduceKind::mean ? "mean" : "reduce";
  }
  std::string_view operator()(const ArgExtreme&) const { return "reduce"; }
  std::string_view operator()(const TopK&) const { return "reduce"; }
  std::string_view operator()(const PRelu&) const { return "elementwise"; }
  std::string_view operator()(const Activate&) const { return "elementwise"; }
  std::string_view operator()(const Unary&) const { return "elementwise"; }
  std::string_view operator()(const Elementwise&) const { return "elementwise"; }
  std::string_view operator()(const Where&) const { return "elementwise"; }
  std::string_view operator()(const Cast&) const { return "elementwise"; }
  std::string_view operator()(const QuantizeLinear&) const { return "quantize"; }
  std::string_view operator()(const DequantizeLinear&) const { return "quantize"; }
  std::string_view operator()(const Requantize&) const { return "quantize"; }
  std::string_view operator()(const Concat&) const { return "concat"; }
  std::string_view operator()(const Stack&) const { return "concat"; }
  std::string_view operator()(const Split&) const { return "split"; }
  std::string_view operator()(const Unstack&) const { return "split"; }
  std::string_view operator()(const Slice&) const { return "split"; }
  std::string_view operator()(const Pad&) const { return "padding"; }
  std::string_view operator()(const Resize&) const { return "resize"; }
  std::string_view operator()(const Transpose&) const { return "transpose"; }
  std::string_view operator()(const DepthToSpace&) const { return "transpose"; }
  std::string_view operator()(const SpaceToDepth&) const { return "transpose"; }
  std::string_view operator()(const SpaceToBatch&) const { return "transpose"; }
  std::string_view operator()(const BatchToSpace&) const { return "transpose"; }
  std::string_view operator()(const ChannelShuffle&) const { return "transpose"; }
  std::string_view operator()(const Gather&) const { return "gather"; }
  std::string_view operator()(const Expand&) const { return "gather"; }
  std::string_view operator()(const Tile&) const { return "gather"; }
  std::string_view operator()(const Reshape&) const { return "reshape"; }
  std::string_view operator()(const Flatten&) const { return "reshape"; }
  std::string_view operator()(const Squeeze&) const { return "reshape"; }
  std::string_view operator()(const Unsqueeze&) const { return "reshape"; }
  std::string_view operator()(const Identity&) const { return "reshape"; }
  std::string_view operator()(const Dropout&) const { return "reshape"; }
  std::string_view operator()(const auto&) const { return "other"; }

 private:
  /// With weights that are known beforehand it is a layer.
  std::string_view product_kind() const {
    const auto is_static = static_input(graph, node, 1);
    return is_static ? "fully_connected" : "matmul";
  }
};

}  // namespace

std::span<const std::string_view> kernel_kinds() { return kAllKinds; }

std::string_view plain_kind(const Graph& graph, const Node& node) {
  return std::visit(PlainKind{graph, node}, node.op);
}

}  // namespace fleetfit::cost
