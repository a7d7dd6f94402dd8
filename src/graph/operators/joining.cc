#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

Outcomes infer(const Concat& op, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, shape.size()));
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in.shape(i) == nullptr) return open(in.dtype(0));
    Shape part = *in.shape(i);
    if (part.size() != shape.size())
      return misfit("{} and {} cannot be joined", to_string(shape), to_string(part));
    const auto extent = std::exchange(part[axis], shape[axis]);
    if (part != shape)
      return misfit("{} and {} cannot be joined", to_string(shape), to_string(*in.shape(i)));
    shape[axis] += extent;
    FLEETFIT_TRY(element_count(shape));
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const Split& op, const Node& node, const Operands& in) {
  const auto parts = node.outputs.size();
  std::vector<Outcome> outcomes(parts, {in.dtype(0), std::nullopt});
  if (in.shape(0) == nullptr) return outcomes;
  const Shape& x = *in.shape(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, x.size()));
  Ints sizes;
  if (in.has(1)) {
    const auto given = in.ints(1);
    if (!given) return outcomes;
    sizes = *given;
  } else {
    if (parts == 0) return misfit("no outputs");
    const auto count = static_cast<std::int64_t>(parts);
    sizes.assign(parts, (x[axis] + count - 1) / count);
    sizes.back() = x[axis] - (count - 1) * sizes.front();
  }
  if (sizes.size() != parts) return misfit("{} sizes for {} parts", sizes.size(), parts);
  std::int64_t left = x[axis];
  for (std::size_t i = 0; i < parts; ++i) {
    if (sizes[i] < 0 || sizes[i] > left)
      return misfit("parts {} of an extent of {}", to_string(sizes), x[axis]);
    left -= sizes[i];
    outcomes[i].shape = x;
    (*outcomes[i].shape)[axis] = sizes[i];
  }
  if (left != 0) return misfit("parts {} of an extent of {}", to_string(sizes), x[axis]);
  return outcomes;
}

Outcomes infer(const Stack& op, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in.shape(i) == nullptr) return open(in.dtype(0));
    if (*in.shape(i) != shape)
      return misfit("{} and {} cannot be stacked", to_string(shape), to_string(*in.shape(i)));
  }
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, shape.size() + 1));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis),
               static_cast<std::int64_t>(in.size()));
  return one(in.dtype(0), shape);
}

Outcomes infer(const Unstack& op, const Node& node, const Operands& in) {
  std::vector<Outcome> outcomes(node.outputs.size(), {in.dtype(0), std::nullopt});
  if (in.shape(0) == nullptr) return outcomes;
  const Shape& x = *in.shape(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, x.size()));
  if (x[axis] != static_cast<std::int64_t>(outcomes.size())) {
    return misfit("{} outputs for an extent of {}", outcomes.size(), x[axis]);
  }
  for (auto& outcome : outcomes) outcome.shape = without_axes(x, {axis});
  return outcomes;
}

void link(const Concat& op, ChannelLinks& links) {
  const std::size_t axis = axis_of(op.axis, links.rank(links.out()));
  int offset = 0;
  for (const TensorId part : links.node().inputs) {
    links.same_but(part, links.out(), axis);
    for (int i = 0; i < links.extent(part, axis); ++i)
      links.unite(part, axis, i, links.out(), axis, offset + i);
    offset += links.extent(part, axis);
  }
}

void link(const Split& op, ChannelLinks& links) {
  const std::size_t axis = axis_of(op.axis, links.rank(links.in(0)));
  int offset = 0;
  for (const TensorId part : links.node().outputs) {
    if (part == kNoTensor) return links.pin_node();
    links.same_but(links.in(0), part, axis);
    for (int i = 0; i < links.extent(part, axis); ++i)
      links.unite(links.in(0), axis, offset + i, part, axis, i);
    offset += links.extent(part, axis);
  }
  if (links.has(1)) links.pin_input(1);
}

void link(const Unstack& op, ChannelLinks& links) {
  for (const TensorId part : links.node().outputs) {
    if (part != kNoTensor) links.drop_axis(part, axis_of(op.axis, links.rank(links.in(0))));
  }
}

bool hands_on(const Concat&, const Graph&, const Node& node) { return node.inputs.size() == 1; }

bool hands_on(const Split&, const Graph&, const Node& node) { return node.outputs.size() == 1; }

/// Indices [first, first + count) along one axis.
Value part(const Value& x, std::size_t axis, std::int64_t first, std::int64_t count) {
  auto indices = everything(x.shape);
  indices[axis] = counting(count);
  for (auto& index : indices[axis]) index += first;
  return pick(x, std::move(indices));
}

/// Joins tensors that differ at most in the extent of this axis.
Value joined(std::span<const Value* const> parts, std::size_t axis, const Form& form) {
  std::vector<std::byte> bytes;
  bytes.reserve(elements(form.shape) * size_of(form.dtype));
  const auto outer =
      elements(Shape(form.shape.begin(), form.shape.begin() + static_cast<std::ptrdiff_t>(axis)));
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const auto* part : parts) {
      const auto all = part->data.bytes();
      const auto run = all.subspan(all.size() / outer * i, all.size() / outer);
      bytes.insert(bytes.end(), run.begin(), run.end());
    }
  }
  return Value{form.dtype, form.shape, TensorData::own(std::move(bytes)),
               parts.front()->quantization};
}

template <class Op>
Values join(const Op& op, const Call& call) {
  for (const auto* part : call.inputs) {
    if (part == nullptr || part->dtype != call.input(0).dtype) {
      return misfit("an operand is missing or of another type");
    }
  }
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.result().shape.size()));
  return one(joined(call.inputs, axis, call.result()));
}

Values run(const Concat& op, const Call& call) { return join(op, call); }

Values run(const Stack& op, const Call& call) { return join(op, call); }

Values run(const Split& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.input(0).shape.size()));
  std::vector<Value> parts;
  std::int64_t first = 0;
  for (const auto& form : call.results) {
    parts.push_back(part(call.input(0), axis, first, form.shape[axis]));
    first += form.shape[axis];
  }
  return parts;
}

Values run(const Unstack& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.input(0).shape.size()));
  std::vector<Value> parts;
  for (const auto& form : call.results) {
    parts.push_back(reshaped(part(call.input(0), axis, std::ssize(parts), 1), form.shape));
  }
  return parts;
}

Status lower_onnx(const Stack& op, Node& node, Lowering& out) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto dtype = out.tensor(node.inputs[i]).dtype;
    node.inputs[i] =
        out.step(node, fmt::format("part{}", i), Unsqueeze{},
                 {node.inputs[i], out.ints(node, fmt::format("axis{}", i), {op.axis})});
    out.tensor(node.inputs[i]).dtype = dtype;
  }
  // The new axis is counted in the joined tensor, where it is the same one.
  node.op = Concat{op.axis};
  return out.keep(std::move(node));
}

Status lower_onnx(const Unstack& op, Node& node, Lowering& out) {
  const Node near{.name = node.name};
  Node split{.name = node.name, .op = Split{op.axis}, .inputs = node.inputs};
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const auto dtype =
        node.outputs[i] == kNoTensor ? DType::f32 : out.tensor(node.outputs[i]).dtype;
    split.outputs.push_back(out.fresh(near, fmt::format("part{}", i), dtype));
  }
  const auto parts = split.outputs;
  FLEETFIT_TRY(out.keep(std::move(split)));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (node.outputs[i] == kNoTensor) continue;
    out.emit(near, fmt::format("squeeze{}", i), Squeeze{},
             {parts[i], out.ints(near, fmt::format("axis{}", i), {op.axis})}, node.outputs[i]);
  }
  return {};
}

/// The sizes of the parts of a dimension, one of which may be -1: the rest.
std::optional<Ints> with_rest(Ints sizes, std::int64_t extent) {
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open == sizes.end()) return sizes;
  *open = 0;
  std::int64_t sum = 0;
  for (const auto size : sizes) {
    if (size < 0 || size > extent) return std::nullopt;
    sum += size;
  }
  if (sum > extent) return std::nullopt;
  *open = extent - sum;
  return sizes;
}

Result<Converted> convert_concatenation(Conversion& c) {
  const auto options = c.options("ConcatenationOptions");
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  return Converted{
      .op = Concat{options.integer("axis")}, .inputs = c.inputs, .activation = *activation};
}

Result<Converted> convert_split(Conversion& c) {
  const auto axis = c.integer(0);
  if (!axis) return not_known("its axis is not constant");
  return Converted{.op = Split{*axis}, .inputs = {c.input(1)}};
}

Result<Converted> convert_split_v(Conversion& c) {
  const auto axis = c.integer(2);
  auto sizes = c.ints(1);
  if (!axis || !sizes) return not_known("its axis or sizes are not constant");
  if (std::find(sizes->begin(), sizes->end(), -1) != sizes->end()) {
    const auto* shape = c.shape(0);
    if (shape == nullptr) return not_known("the shape of its input is not known");
    const auto rank = static_cast<std::int64_t>(shape->size());
    const auto positive = *axis < 0 ? *axis + rank : *axis;
    if (positive < 0 || positive >= rank) return refuse(fmt::format("it has no axis {}", *axis));
    sizes = with_rest(*sizes, (*shape)[static_cast<std::size_t>(positive)]);
    if (!sizes) return refuse("its sizes do not fit its input");
  }
  return Converted{.op = Split{*axis}, .inputs = {c.input(0), c.add_ints("sizes", *sizes)}};
}

Result<Converted> convert_pack(Conversion& c) {
  const auto options = c.options("PackOptions");
  return Converted{.op = Stack{options.integer("axis")}, .inputs = c.inputs};
}

Result<Converted> convert_unpack(Conversion& c) {
  const auto options = c.options("UnpackOptions");
  return Converted{.op = Unstack{options.integer("axis")}, .inputs = c.inputs};
}

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Concat>({.number = 23,
                      .name = "Concat",
                      .arity = {1, kAnyNumber},
                      .only_moves = true,
                      .data_inputs = DataInputs::joined,
                      .follow = rule<follow_axis<Concat>>,
                      .trained = InputSet::all(),
                      .takes_any_factor = true,
                      .kernel_kind = "concat",
                      .shares_memory = true,
                      .onnx = {attribute<&Concat::axis>("axis").or_else(1)}}),
    describe<Split>({.number = 24,
                     .name = "Split",
                     .arity = {1, 2, kAnyNumber},
                     .only_moves = true,
                     .follow = rule<follow_axis<Split>>,
                     .kernel_kind = "split",
                     .onnx = {attribute<&Split::axis>("axis")},
                     .was_attribute = {"split", 1},
                     .onnx_counts = {1}}),
    describe<Stack>({.number = 36,
                     .name = "Stack",
                     .arity = {1, kAnyNumber},
                     .only_moves = true,
                     .data_inputs = DataInputs::joined,
                     .kernel_kind = "concat",
                     .outside_onnx = true}),
    describe<Unstack>({.number = 37,
                       .name = "Unstack",
                       .arity = {1, 1, kAnyNumber},
                       .only_moves = true,
                       .kernel_kind = "split",
                       .outside_onnx = true}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"CONCATENATION", convert_concatenation, {1, kAnyNumber}},
    {"SPLIT", convert_split, {2, 2, kAnyNumber}},
    {"SPLIT_V", convert_split_v, {3, 3, kAnyNumber}},
    {"PACK", convert_pack, {1, kAnyNumber}},
    {"UNPACK", convert_unpack, {1, 1, kAnyNumber}},
});

}  // namespace

OperatorFamily joining_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
