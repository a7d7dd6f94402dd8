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

namespace {

// Writes the steps of one rewritten node, each reading the result of the one before.
class Steps {
 public:
  Steps(LayoutForms& forms, const Node& node)
      : forms_(forms),
        name_(node.name),
        like_(forms.graph().tensor(node.inputs.front())),
        current_(forms.moved(node.inputs.front())) {}

  const Shape& shape() const { return *forms_.graph().tensor(current_).shape; }

  void pad(const Ints& begin, const Ints& end) {
    Ints pads{0, 0};
    auto padded = shape();
    pads.insert(pads.end(), begin.begin(), begin.end());
    pads.insert(pads.end(), {0, 0});
    pads.insert(pads.end(), end.begin(), end.end());
    for (std::size_t d = 0; d < begin.size(); ++d) padded[d + 2] += begin[d] + end[d];
    if (padded == shape()) return;
    step(Pad{}, {forms_.graph().add_ints(name_ + "_pads", pads)}, padded, "_pad");
  }

  void reshape(const Shape& to) {
    step(Reshape{.allow_zero = true}, {forms_.graph().add_ints(name_ + "_shape", to)}, to,
         "_reshape");
  }

  void transpose(const Ints& perm) {
    step(Transpose{perm}, {}, permuted(shape(), perm), "_transpose");
  }

  void crop(const Ints& begin, const Ints& end) {
    Ints starts;
    Ints ends;
    Ints axes;
    auto cropped = shape();
    for (std::size_t d = 0; d < begin.size(); ++d) {
      starts.push_back(begin[d]);
      ends.push_back(cropped[d + 2] - end[d]);
      axes.push_back(static_cast<std::int64_t>(d) + 2);
      cropped[d + 2] -= begin[d] + end[d];
    }
    if (cropped == shape()) return;
    auto& graph = forms_.graph();
    step(Slice{},
         {graph.add_ints(name_ + "_starts", starts), graph.add_ints(name_ + "_ends", ends),
          graph.add_ints(name_ + "_axes", axes)},
         cropped, "_crop");
  }

  // The last step makes the node's result.
  void finish(const Node& node) {
    forms_.emit({.name = node.name,
                 .op = Identity{},
                 .inputs = {current_},
                 .outputs = {forms_.declare_moved(node.outputs.front())},
                 .activation = node.activation});
  }

 private:
  void step(Operator op, std::vector<TensorId> more, const Shape& to, const char* role) {
    std::vector<TensorId> inputs{current_};
    inputs.insert(inputs.end(), more.begin(), more.end());
    current_ = forms_.graph().add_tensor({.name = name_ + role,
                                          .dtype = like_.dtype,
                                          .shape = to,
                                          .quantization = like_.quantization});
    forms_.emit({.name = name_ + role,
                 .op = std::move(op),
                 .inputs = std::move(inputs),
                 .outputs = {current_}});
  }

  LayoutForms& forms_;
  std::string name_;
  Tensor like_;
  TensorId current_ = kNoTensor;
};

struct Blocks {
  Ints block;
  Ints begin;
  Ints end;
};

// Block and pads (or crops) if both are constants and cover all spatial dimensions.
std::optional<Blocks> constant_blocks(const Graph& graph, const Node& node) {
  const auto& x = graph.tensor(node.inputs.front());
  if (!x.shape || !graph.tensor(node.outputs.front()).shape || x.shape->size() < 3)
    return std::nullopt;
  if (x.quantization && x.quantization->axis) return std::nullopt;
  const auto block = constant_ints(graph, node.inputs[1]);
  const auto pads = constant_ints(graph, node.inputs[2]);
  if (!block || !pads || block->size() != x.shape->size() - 2 || pads->size() != 2 * block->size())
    return std::nullopt;
  Blocks blocks{*block, {}, {}};
  for (std::size_t d = 0; d < block->size(); ++d) {
    blocks.begin.push_back((*pads)[2 * d]);
    blocks.end.push_back((*pads)[2 * d + 1]);
  }
  return blocks;
}

// N x C x (s * b)… -> (b… * N) x C x s…
void space_to_batch(Steps& steps, const Blocks& blocks) {
  steps.pad(blocks.begin, blocks.end);
  const auto shape = steps.shape();
  Shape split{shape[0], shape[1]};
  Shape joined{shape[0], shape[1]};
  Ints perm;
  for (std::size_t d = 0; d < blocks.block.size(); ++d) {
    const auto block = blocks.block[d];
    perm.push_back(static_cast<std::int64_t>(2 * d) + 3);
    split.insert(split.end(), {shape[d + 2] / block, block});
    joined.front() *= block;
    joined.push_back(shape[d + 2] / block);
  }
  perm.insert(perm.end(), {0, 1});
  for (std::size_t d = 0; d < blocks.block.size(); ++d)
    perm.push_back(static_cast<std::int64_t>(2 * d) + 2);
  steps.reshape(split);
  steps.transpose(perm);
  steps.reshape(joined);
}

// (b… * N) x C x s… -> N x C x (s * b)…
void batch_to_space(Steps& steps, const Blocks& blocks) {
  const auto shape = steps.shape();
  const auto spatial = static_cast<std::int64_t>(blocks.block.size());
  const auto batch = shape[0] / elements(blocks.block);
  Shape split = blocks.block;
  split.insert(split.end(), {batch, shape[1]});
  split.insert(split.end(), shape.begin() + 2, shape.end());
  Shape joined{batch, shape[1]};
  Ints perm{spatial, spatial + 1};
  for (std::int64_t d = 0; d < spatial; ++d) {
    perm.insert(perm.end(), {spatial + 2 + d, d});
    joined.push_back(shape[static_cast<std::size_t>(d) + 2] *
                     blocks.block[static_cast<std::size_t>(d)]);
  }
  steps.reshape(split);
  steps.transpose(perm);
  steps.reshape(joined);
  steps.crop(blocks.begin, blocks.end);
}

}  // namespace

bool move_batch_operator(LayoutForms& forms, const Node& node) {
  const bool to_batch = std::holds_alternative<SpaceToBatch>(node.op);
  if (!to_batch && !std::holds_alternative<BatchToSpace>(node.op)) return false;
  if (forms.wanted() != Layout::nchw) return false;
  const auto blocks = constant_blocks(forms.graph(), node);
  if (!blocks) return false;
  Steps steps(forms, node);
  if (to_batch) {
    space_to_batch(steps, *blocks);
  } else {
    batch_to_space(steps, *blocks);
  }
  steps.finish(node);
  return true;
}

}  // namespace fleetfit::graph::rewrite
