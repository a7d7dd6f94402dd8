#include <utility>

#include "fleetfit/graph/operator_facts.h"
#include "graph/operators/traits.h"
#include "graph/passes/constants.h"
#include "graph/passes/layout_forms.h"

namespace fleetfit::graph::rewrite {
namespace {

// How weights get from one layout to the other: read in shape `split`, transposed, read in shape
// `joined`.
struct WeightMove {
  Shape split;
  Ints perm;
  Shape joined;
  std::optional<Quantization> quantization;
};

std::optional<WeightMove> weight_move(const LayoutForms& forms, const Conv&,
                                      const Tensor& weights) {
  const auto perm = forms.perm(weights.shape->size());
  return WeightMove{*weights.shape, perm, permuted(*weights.shape, perm),
                    transposed(weights.quantization, perm)};
}

// Transposed convolutions keep the groups with their inputs in NCHW, with their outputs in NHWC.
std::optional<WeightMove> weight_move(const LayoutForms& forms, const ConvTranspose& op,
                                      const Tensor& weights) {
  if (op.groups > 1 && weights.quantization && weights.quantization->axis) return std::nullopt;
  WeightMove move;
  const auto rank = static_cast<std::int64_t>(weights.shape->size());
  move.split = *weights.shape;
  move.split.front() /= op.groups;
  move.split.insert(move.split.begin(), op.groups);
  const bool to_nhwc = forms.wanted() == Layout::nhwc;
  // groups x in x out x kernel… <-> groups x out x kernel… x in
  move.perm = {0};
  if (!to_nhwc) move.perm.push_back(rank);
  for (std::int64_t d = 1; d < rank; ++d) move.perm.push_back(to_nhwc ? d + 1 : d);
  if (to_nhwc) move.perm.push_back(1);
  move.joined = permuted(move.split, move.perm);
  move.joined[1] *= op.groups;
  move.joined.erase(move.joined.begin());
  move.quantization = weights.quantization;
  if (move.quantization && move.quantization->axis) {
    ++*move.quantization->axis;
    move.quantization = transposed(move.quantization, move.perm);
    --*move.quantization->axis;
  }
  return move;
}

TensorId constant_weights(LayoutForms& forms, TensorId id, const WeightMove& move) {
  auto tensor = forms.graph().tensor(id);
  tensor.data = transposed(*tensor.data, tensor.dtype, move.split, move.perm);
  tensor.shape = move.joined;
  tensor.quantization = move.quantization;
  return forms.graph().add_tensor(std::move(tensor));
}

TensorId emit_step(LayoutForms& forms, Operator op, std::vector<TensorId> inputs, Tensor result) {
  auto name = result.name;
  const auto id = forms.graph().add_tensor(std::move(result));
  forms.emit(
      {.name = std::move(name), .op = std::move(op), .inputs = std::move(inputs), .outputs = {id}});
  return id;
}

TensorId reshape_step(LayoutForms& forms, TensorId x, const Shape& shape, const Tensor& like) {
  if (forms.graph().tensor(x).shape == shape) return x;
  const auto target = forms.graph().add_ints(like.name + "_shape", shape);
  return emit_step(forms, Reshape{}, {x, target},
                   {.name = like.name + "_reshape", .dtype = like.dtype, .shape = shape});
}

TensorId computed_weights(LayoutForms& forms, TensorId id, const WeightMove& move) {
  const auto like = forms.graph().tensor(id);
  const auto split = reshape_step(forms, forms.plain(id), move.split, like);
  const auto turned = emit_step(forms, Transpose{move.perm}, {split},
                                {.name = like.name + "_transpose",
                                 .dtype = like.dtype,
                                 .shape = permuted(move.split, move.perm)});
  return reshape_step(forms, turned, move.joined, like);
}

std::optional<TensorId> moved_weights(LayoutForms& forms, const Node& node, const auto& op) {
  const auto id = node.inputs[1];
  const auto& weights = forms.graph().tensor(id);
  if (!weights.shape || weights.shape->size() < 3) return std::nullopt;
  const auto move = weight_move(forms, op, weights);
  if (!move) return std::nullopt;
  if (weights.is_constant()) return constant_weights(forms, id, *move);
  if (weights.quantization && weights.quantization->axis) return std::nullopt;
  return computed_weights(forms, id, *move);
}

void set_layout(Operator& op, Layout layout) {
  std::visit(
      [&](auto& known) {
        if constexpr (requires { known.layout; }) known.layout = layout;
      },
      op);
}

}  // namespace

bool move_image_operator(LayoutForms& forms, const Node& node) {
  // What exists in NHWC alone has no such field.
  if (traits(node.op).only_nhwc || node.outputs.size() != 1) return false;
  if (layout_of(node.op).value_or(forms.wanted()) == forms.wanted()) return false;
  const auto& shape = forms.graph().tensor(node.inputs.front()).shape;
  if (!shape || !forms.graph().tensor(node.outputs.front()).shape) return false;
  auto moved = node;
  set_layout(moved.op, forms.wanted());
  if (shape->size() < 3) {
    forms.emit_plain(std::move(moved));
    return true;
  }
  std::optional<TensorId> weights;
  if (const auto* conv = std::get_if<Conv>(&node.op)) {
    weights = moved_weights(forms, node, *conv);
    if (!weights) return false;
  } else if (const auto* transpose = std::get_if<ConvTranspose>(&node.op)) {
    weights = moved_weights(forms, node, *transpose);
    if (!weights) return false;
  }
  moved.inputs.front() = forms.moved(node.inputs.front());
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    moved.inputs[i] = i == 1 && weights ? *weights : forms.plain(node.inputs[i]);
  moved.outputs = {forms.declare_moved(node.outputs.front())};
  forms.emit(std::move(moved));
  return true;
}

}  // namespace fleetfit::graph::rewrite
