#include "graph/infer_node.h"

#include <algorithm>

#include "graph/operands.h"

namespace fleetfit::graph {
namespace {

template <class From>
std::vector<double> as_doubles(const TensorData& data) {
  std::vector<double> numbers;
  for (const auto value : data.as<From>()) numbers.push_back(static_cast<double>(value));
  return numbers;
}

/// Same type and shape as the first input.
Outcomes like_first(const Operands& in) {
  return one(in.dtype(0), in.shape(0) ? std::optional<Shape>(*in.shape(0)) : std::nullopt);
}

Outcomes first_shape_as(DType dtype, const Operands& in) {
  auto outcomes = like_first(in);
  outcomes->front().dtype = dtype;
  return outcomes;
}

struct Infer {
  const Node& node;
  const Operands& in;

  Outcomes operator()(const Unknown&) const { return std::vector<Outcome>(node.outputs.size()); }
  Outcomes operator()(const InstanceNorm&) const { return like_first(in); }
  Outcomes operator()(const PRelu&) const { return like_first(in); }
  Outcomes operator()(const Lrn&) const { return like_first(in); }
  Outcomes operator()(const Activate&) const { return like_first(in); }
  Outcomes operator()(const Unary&) const { return like_first(in); }
  Outcomes operator()(const Identity&) const { return like_first(in); }
  Outcomes operator()(const Cast& op) const { return first_shape_as(op.to, in); }
  Outcomes operator()(const Requantize& op) const { return first_shape_as(op.to, in); }
  Outcomes operator()(const QuantizeLinear&) const {
    return first_shape_as(in.has(2) ? in.dtype(2) : DType::u8, in);
  }
  Outcomes operator()(const DequantizeLinear&) const { return first_shape_as(DType::f32, in); }
  Outcomes operator()(const Constant&) const { return std::vector<Outcome>(1); }
  Outcomes operator()(const Dropout&) const {
    auto outcomes = like_first(in);
    outcomes->push_back({DType::boolean, outcomes->front().shape});
    return outcomes;
  }
  template <class Op>
  Outcomes operator()(const Op& op) const {
    return infer(op, node, in);
  }
};

}  // namespace

std::optional<Ints> Operands::ints(std::size_t i) const {
  if (!has(i) || all_[i].value == nullptr) return std::nullopt;
  const auto& data = *all_[i].value;
  if (all_[i].dtype == DType::i64) {
    const auto values = data.as<std::int64_t>();
    return Ints(values.begin(), values.end());
  }
  if (all_[i].dtype == DType::i32) {
    const auto values = data.as<std::int32_t>();
    return Ints(values.begin(), values.end());
  }
  return std::nullopt;
}

std::optional<std::vector<double>> Operands::numbers(std::size_t i) const {
  if (!has(i) || all_[i].value == nullptr) return std::nullopt;
  const auto& data = *all_[i].value;
  switch (all_[i].dtype) {
    case DType::f32:
      return as_doubles<float>(data);
    case DType::f64:
      return as_doubles<double>(data);
    case DType::i32:
      return as_doubles<std::int32_t>(data);
    case DType::i64:
      return as_doubles<std::int64_t>(data);
    default:
      return std::nullopt;
  }
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

Result<std::vector<Outcome>> infer_node(const Node& node, std::span<const Operand> inputs) {
  const Operands in(inputs);
  auto outcomes = std::visit(Infer{node, in}, node.op);
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
