#include "fleetfit/graph/shape_inference.h"

#include <algorithm>
#include <memory>

#include "fleetfit/graph/evaluate.h"
#include "graph/infer_node.h"
#include "graph/is_one_of.h"
#include "graph/operands.h"
#include "graph/operators/traits.h"

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

std::optional<Ints> Operands::ints(std::size_t i) const {
  if (!has(i) || all_[i].value == nullptr) return std::nullopt;
  return ints_in(all_[i].dtype, *all_[i].value);
}

std::optional<std::vector<double>> Operands::numbers(std::size_t i) const {
  if (!has(i) || all_[i].value == nullptr) return std::nullopt;
  const auto type = all_[i].dtype;
  const bool is_usual =
      type == DType::f32 || type == DType::f64 || type == DType::i32 || type == DType::i64;
  return is_usual ? numbers_in(type, *all_[i].value) : std::nullopt;
}

Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank) {
  const auto dimensions = static_cast<std::int64_t>(rank);
  if (axis < -dimensions || axis >= dimensions) {
    return misfit("axis {} of a tensor of {} dimensions", axis, rank);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + dimensions : axis);
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 1; i <= result.size(); ++i) {
    const auto left = i <= a.size() ? a[a.size() - i] : 1;
    const auto right = i <= b.size() ? b[b.size() - i] : 1;
    if (left != right && left != 1 && right != 1) {
      return misfit("shapes {} and {} do not go together", to_string(a), to_string(b));
    }
    result[result.size() - i] = left == 1 ? right : left;
  }
  return result;
}

Result<std::set<std::size_t>> resolve_axes(const Ints& axes, std::size_t rank) {
  std::set<std::size_t> resolved;
  for (const auto axis : axes) {
    FLEETFIT_ASSIGN(const auto index, resolve_axis(axis, rank));
    if (!resolved.insert(index).second) return misfit("axis {} is named twice", axis);
  }
  return resolved;
}

Shape without_axes(const Shape& shape, const std::set<std::size_t>& axes) {
  Shape kept;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!axes.contains(i)) kept.push_back(shape[i]);
  }
  return kept;
}

Outcomes infer_like_first(const Operator&, const Node&, const Operands& in) {
  return first_shape_as(in.dtype(0), in);
}

Outcomes first_shape_as(DType dtype, const Operands& in) {
  return one(dtype, in.shape(0) ? std::optional<Shape>(*in.shape(0)) : std::nullopt);
}

Result<std::vector<Outcome>> infer_node(const Node& node, std::span<const Operand> inputs) {
  const Operands in(inputs);
  const auto infer = traits(node.op).infer;
  if (infer == nullptr) return std::vector<Outcome>(node.outputs.size());
  auto outcomes = infer(node.op, node, in);
  if (!outcomes) return outcomes;
  for (const auto& outcome : *outcomes) {
    if (!outcome.shape) continue;
    if (const auto count = element_count(*outcome.shape); !count) {
      return core::within("result", count.error());
    }
  }
  outcomes->resize(node.outputs.size());
  return outcomes;
}

}  // namespace fleetfit::graph
