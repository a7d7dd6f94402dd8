#include <algorithm>

#include "fleetfit/graph/evaluate.h"
#include "graph/infer_node.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(elements(*tensor.shape)) * size_of(tensor.dtype);
}

bool all_constant(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
    return id == kNoTensor || graph.tensor(id).is_constant();
  });
}

// A model with quantized weights stays one: its weights are not written out as floats.
bool widens_quantized(const Graph& graph, const Node& node) {
  if (std::holds_alternative<DequantizeLinear>(node.op)) return true;
  return std::holds_alternative<Requantize>(node.op) &&
         graph.tensor(node.inputs.front()).quantization &&
         !graph.tensor(node.outputs.front()).quantization;
}

bool small_enough(const Graph& graph, const Node& node) {
  std::size_t before = 0;
  for (const auto id : node.inputs) {
    if (id != kNoTensor) before += graph.tensor(id).data->size_bytes();
  }
  std::size_t after = 0;
  for (const auto id : node.outputs) {
    if (id == kNoTensor) continue;
    if (!graph.tensor(id).shape || size_of(graph.tensor(id).dtype) == 0) return false;
    after += bytes_of(graph.tensor(id));
  }
  return after <= std::max(before, kMostBytes);
}

bool fold_shape(Graph& graph, const Node& node, const ShapeOf& op) {
  const auto& shape = graph.tensor(node.inputs.front()).shape;
  if (!shape || node.activation) return false;
  auto& result = graph.tensor(node.outputs.front());
  result.dtype = op.index_type;
  result.data = extents_data(op, *shape);
  result.shape = Shape{static_cast<std::int64_t>(extents_of(op, *shape).size())};
  return true;
}

// Values that are all alike cost nothing until somebody reads them, whatever their number.
bool fold_filled(Graph& graph, const Node& node, const ConstantOfShape& op) {
  auto& result = graph.tensor(node.outputs.front());
  const bool can_generate = op.dtype == DType::f32 || op.dtype == DType::i32 ||
                            op.dtype == DType::i64 || op.dtype == DType::i8 ||
                            op.dtype == DType::u8;
  if (!can_generate || !result.shape || node.activation || result.quantization) return false;
  result.dtype = op.dtype;
  result.data = TensorData::generate({.dtype = op.dtype,
                                      .count = static_cast<std::size_t>(elements(*result.shape)),
                                      .center = op.value});
  return true;
}

bool fold_computed(Graph& graph, const Node& node) {
  if (std::holds_alternative<Unknown>(node.op) || node.inputs.empty()) return false;
  if (widens_quantized(graph, node) || !small_enough(graph, node)) return false;
  std::vector<Value> values;
  values.reserve(node.inputs.size());
  std::vector<const Value*> operands;
  for (const auto id : node.inputs) {
    if (id == kNoTensor) {
      operands.push_back(nullptr);
      continue;
    }
    const auto& tensor = graph.tensor(id);
    if (!tensor.shape) return false;
    values.push_back({tensor.dtype, *tensor.shape, *tensor.data, tensor.quantization});
    operands.push_back(&values.back());
  }
  std::vector<std::optional<Quantization>> quantizations;
  for (const auto id : node.outputs)
    quantizations.push_back(id == kNoTensor ? std::nullopt : graph.tensor(id).quantization);

  auto results = evaluate(node, operands, quantizations);
  // Whatever the interpreter cannot do is left to the device.
  if (!results || results->size() < node.outputs.size()) return false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoTensor) continue;
    auto& tensor = graph.tensor(node.outputs[i]);
    auto& value = (*results)[i];
    tensor.dtype = value.dtype;
    tensor.shape = std::move(value.shape);
    tensor.data = std::move(value.data);
  }
  return true;
}

bool fold(Graph& graph, const Node& node) {
  if (std::holds_alternative<Constant>(node.op))
    return graph.tensor(node.outputs.front()).is_constant() && !node.activation;
  if (const auto* op = std::get_if<ShapeOf>(&node.op)) return fold_shape(graph, node, *op);
  if (!all_constant(graph, node)) return false;
  if (const auto* op = std::get_if<ConstantOfShape>(&node.op)) {
    if (fold_filled(graph, node, *op)) return true;
  }
  return fold_computed(graph, node);
}

}  // namespace

Result<bool> fold_constants(Graph& graph) {
  return rewrite_nodes(graph, [&](Rewriter& rewriter, int n) {
    if (fold(graph, rewriter.node(n))) rewriter.remove(n);
  });
}

}  // namespace fleetfit::graph::rewrite
