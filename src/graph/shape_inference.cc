#include "fleetfit/graph/shape_inference.h"

#include <algorithm>
#include <memory>

#include "fleetfit/graph/evaluate.h"
#include "graph/infer_node.h"
#include "graph/is_one_of.h"

namespace fleetfit::graph {
namespace {

// Shapes are short; anything longer is data, which inference does not follow.
constexpr std::int64_t kMostFollowed = 4096;

/// Whether computing on so few elements takes no time. No elements at all may take some where there
/// are several dimensions, others of which may be absurdly large; an empty list, such as the shape
/// of a scalar, is fine.
bool is_short(const Shape& shape) {
  const auto count = elements(shape);
  return count == 0 ? shape.size() < 2 : count <= kMostFollowed;
}

/// Follows the values of small tensors that can be known before the network runs.
class KnownValues {
 public:
  explicit KnownValues(const Graph& graph) : graph_(graph), computed_(graph.tensors.size()) {}

  const TensorData* find(TensorId id) const {
    if (graph_.tensor(id).data) return &*graph_.tensor(id).data;
    const auto& value = computed_[static_cast<std::size_t>(id)];
    return value ? &value->data : nullptr;
  }

  /// Computes what the node gives, if it is small and all it reads is known. Quantized numbers are
  /// data: shapes are not made of them.
  void follow(const Node& node) {
    if (is_one_of<Unknown, Constant, QuantizeLinear, DequantizeLinear>(node.op) || !small(node))
      return;
    if (const auto* op = std::get_if<ShapeOf>(&node.op)) return follow_shape(*op, node);
    std::vector<Value> held;
    held.reserve(node.inputs.size());
    std::vector<const Value*> inputs;
    for (const auto id : node.inputs) {
      if (id == kNoTensor) {
        inputs.push_back(nullptr);
        continue;
      }
      const auto* data = find(id);
      const auto& tensor = graph_.tensor(id);
      if (data == nullptr || !tensor.shape || !is_short(*tensor.shape)) return;
      held.push_back({tensor.dtype, *tensor.shape, *data, tensor.quantization});
      inputs.push_back(&held.back());
    }
    auto results = evaluate(node, inputs);
    if (!results) return;
    for (std::size_t i = 0; i < results->size() && i < node.outputs.size(); ++i)
      keep(node.outputs[i], std::move((*results)[i]));
  }

 private:
  bool small(const Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](TensorId id) {
      return id == kNoTensor || (graph_.tensor(id).shape && is_short(*graph_.tensor(id).shape));
    });
  }

  void follow_shape(const ShapeOf& op, const Node& node) {
    const auto& shape = graph_.tensor(node.inputs[0]).shape;
    if (!shape) return;
    const auto& result = graph_.tensor(node.outputs[0]);
    keep(node.outputs[0], {op.index_type, *result.shape, extents_data(op, *shape), std::nullopt});
  }

  void keep(TensorId id, Value value) {
    if (id != kNoTensor)
      computed_[static_cast<std::size_t>(id)] = std::make_unique<Value>(std::move(value));
  }

  const Graph& graph_;
  std::vector<std::unique_ptr<Value>> computed_;
};

Operand operand(const Graph& graph, const KnownValues& values, TensorId id) {
  if (id == kNoTensor) return {};
  const auto& tensor = graph.tensor(id);
  return {true, tensor.dtype, tensor.shape ? &*tensor.shape : nullptr, values.find(id)};
}

}  // namespace

Status infer_shapes(Graph& graph) {
  KnownValues values(graph);
  for (const auto& node : graph.nodes) {
    std::vector<Operand> inputs;
    for (const auto id : node.inputs) inputs.push_back(operand(graph, values, id));
    auto outcomes = infer_node(node, inputs);
    if (!outcomes) return core::within(describe(node), outcomes.error());
    for (std::size_t i = 0; i < outcomes->size(); ++i) {
      if (node.outputs[i] == kNoTensor) continue;
      auto& tensor = graph.tensor(node.outputs[i]);
      auto& outcome = (*outcomes)[i];
      if (outcome.dtype != DType::unknown) tensor.dtype = outcome.dtype;
      if (outcome.shape) tensor.shape = std::move(outcome.shape);
    }
    values.follow(node);
  }
  return {};
}

Status bind_dimensions(Graph& graph, const std::map<std::string, std::int64_t>& extents) {
  for (const auto id : graph.inputs) {
    auto& tensor = graph.tensor(id);
    for (std::size_t i = 0; tensor.shape && i < tensor.symbols.size() && i < tensor.shape->size();
         ++i) {
      const auto found = extents.find(tensor.symbols[i]);
      if (found == extents.end() || found->first.empty()) continue;
      (*tensor.shape)[i] = found->second;
    }
    if (!tensor.shape) continue;
    if (auto count = element_count(*tensor.shape); !count)
      return core::within("input " + tensor.name, count.error());
  }
  return infer_shapes(graph);
}

}  // namespace fleetfit::graph
