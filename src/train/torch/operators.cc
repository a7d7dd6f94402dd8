#include "train/torch/operators.h"

#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>

namespace fleetfit::train {
namespace operators {

Ints ints_of(const at::Tensor& numbers) {
  const auto flat = numbers.to(at::kCPU, at::kLong).contiguous();
  const auto* first = flat.data_ptr<std::int64_t>();
  return {first, first + flat.numel()};
}

std::int64_t positive_axis(std::int64_t axis, std::int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

Ints positive_axes(Ints axes, std::int64_t rank) {
  for (auto& axis : axes) axis = positive_axis(axis, rank);
  return axes;
}

at::Tensor to_channels_first(const at::Tensor& x, Layout layout) {
  return layout == Layout::nchw ? x : x.movedim(-1, 1);
}

at::Tensor from_channels_first(const at::Tensor& x, Layout layout) {
  return layout == Layout::nchw ? x : x.movedim(1, -1);
}

Ints spatial_of(const at::Tensor& x) { return x.sizes().slice(2).vec(); }

at::Tensor pad_spatial(const at::Tensor& x, const Ints& begin, const Ints& end, double value) {
  Ints pads;
  for (std::size_t i = begin.size(); i-- > 0;) {
    pads.push_back(begin[i]);
    pads.push_back(end[i]);
  }
  return at::constant_pad_nd(x, pads, value);
}

std::vector<at::Tensor> together(std::vector<at::Tensor> operands) {
  const auto far = std::ranges::find_if(operands, [](const at::Tensor& x) { return !x.is_cpu(); });
  if (far == operands.end()) return operands;
  const auto device = far->device();
  for (auto& operand : operands) operand = operand.to(device);
  return operands;
}

}  // namespace operators

namespace {

using namespace graph;
using operators::Memory;

const graph::OperatorTable<operators::Runner>& runners() {
  static const graph::OperatorTable<operators::Runner> kTable{
      operators::arithmetic_runners(), operators::layer_runners(), operators::movement_runners()};
  return kTable;
}

}  // namespace

std::vector<at::Tensor> run_operator(const OperatorCall& call) {
  const auto* runner = runners().find(call.node.op);
  if (runner == nullptr) operators::misfit("nothing here trains it");
  auto outputs = runner->run(call);
  if (call.node.activation) {
    const auto memory = forgets_results(call.node.op) ? Memory::overwrite : Memory::keep;
    outputs[0] = operators::activated(outputs[0], call.node.activation, memory);
  }
  return outputs;
}

bool forgets_results(const graph::Operator& op) {
  if (const auto* sum = std::get_if<Elementwise>(&op)) return sum->kind == ElementwiseKind::add;
  return std::holds_alternative<Conv>(op) || std::holds_alternative<BatchNorm>(op);
}

std::optional<std::string> why_not_trainable(const graph::Operator& op) {
  if (const auto* unknown = std::get_if<Unknown>(&op)) return unknown->reason;
  if (std::holds_alternative<Constant>(op)) return std::nullopt;
  if (runners().find(op) != nullptr) return std::nullopt;
  return "no gradient of it is known here";
}

std::optional<at::ScalarType> scalar_type_of(graph::DType type) {
  switch (type) {
    case DType::f32:
    case DType::f64:
      return at::kFloat;
    case DType::i32:
    case DType::i64:
      return at::kLong;
    case DType::boolean:
      return at::kBool;
    default:
      return std::nullopt;
  }
}

}  // namespace fleetfit::train
