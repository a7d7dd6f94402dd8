#include <algorithm>
#include <array>
#include <iterator>

#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

/// A shape whose unknown extents are inserted as ones at `axes`.
Shape with_ones(const Shape& shape, const std::set<std::size_t>& axes) {
  Shape result;
  auto next = shape.begin();
  for (std::size_t i = 0; i < shape.size() + axes.size(); ++i)
    result.push_back(axes.contains(i) ? 1 : *next++);
  return result;
}

Result<Shape> shape_of(const Transpose& op, const Shape& x) {
  if (op.perm.empty()) return Shape(x.rbegin(), x.rend());
  if (op.perm.size() != x.size())
    return misfit("{} axes for {} dimensions", op.perm.size(), x.size());
  FLEETFIT_TRY(resolve_axes(op.perm, x.size()));
  Shape shape;
  for (const auto axis : op.perm) shape.push_back(x[resolve_axis(axis, x.size()).value()]);
  return shape;
}

Outcomes infer(const Reshape& op, const Operands& in) {
  const auto wanted = in.ints(1);
  if (in.shape(0) == nullptr || !wanted) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  Shape shape = *wanted;
  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !op.allow_zero) {
      if (i >= x.size())
        return misfit("shape {} copies an extent that {} does not have", to_string(*wanted),
                      to_string(x));
      shape[i] = x[i];
    } else if (shape[i] == -1) {
      if (rest) return misfit("shape {} leaves two extents open", to_string(*wanted));
      rest = i;
      shape[i] = 1;
    }
  }
  FLEETFIT_ASSIGN(const auto count, element_count(shape));
  const auto total = elements(x);
  if (rest) {
    if (count == 0 || total % count != 0)
      return misfit("{} cannot become {}", to_string(x), to_string(*wanted));
    shape[*rest] = total / count;
  } else if (count != total) {
    return misfit("{} cannot become {}", to_string(x), to_string(*wanted));
  }
  return one(in.dtype(0), shape);
}

Result<Shape> shape_of(const Flatten& op, const Shape& x) {
  const auto rank = static_cast<std::int64_t>(x.size());
  if (op.axis < -rank || op.axis > rank)
    return misfit("axis {} of a tensor of {} dimensions", op.axis, rank);
  const auto cut = x.begin() + (op.axis < 0 ? op.axis + rank : op.axis);
  return Shape{elements({x.begin(), cut}), elements({cut, x.end()})};
}

Outcomes infer(const Squeeze&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  if (!in.has(1)) {
    Shape shape;
    std::copy_if(x.begin(), x.end(), std::back_inserter(shape),
                 [](std::int64_t extent) { return extent != 1; });
    return one(in.dtype(0), shape);
  }
  const auto given = in.ints(1);
  if (!given) return open(in.dtype(0));
  FLEETFIT_ASSIGN(const auto axes, resolve_axes(*given, x.size()));
  for (const auto axis : axes) {
    if (x[axis] != 1)
      return misfit("dimension {} has {} elements and cannot be dropped", axis, x[axis]);
  }
  return one(in.dtype(0), without_axes(x, axes));
}

Outcomes infer(const Unsqueeze&, const Operands& in) {
  const auto given = in.ints(1);
  if (in.shape(0) == nullptr || !given) return open(in.dtype(0));
  FLEETFIT_ASSIGN(const auto axes, resolve_axes(*given, in.shape(0)->size() + given->size()));
  return one(in.dtype(0), with_ones(*in.shape(0), axes));
}

Outcomes infer(const Dropout&, const Operands& in) {
  FLEETFIT_ASSIGN(auto outcomes, first_shape_as(in.dtype(0), in));
  outcomes.push_back({DType::boolean, outcomes.front().shape});
  return outcomes;
}

void link(const Transpose& op, ChannelLinks& links) {
  for (std::size_t a = 0; a < links.rank(links.out()); ++a) {
    const auto from = op.perm.empty() ? links.rank(links.out()) - 1 - a
                                      : axis_of(op.perm[a], links.rank(links.in(0)));
    links.same(links.in(0), from, links.out(), a);
  }
}

bool hands_on(const Transpose& op, const Graph& graph, const Node& node) {
  const auto& shape = graph.tensor(node.inputs.front()).shape;
  return shape && is_identity(full_perm(op, shape->size()));
}

bool always(const Operator&, const Graph&, const Node&) { return true; }

/// The first input in the shape of the result.
Values keep_elements(const Operator&, const Call& call) {
  return one(reshaped(call.input(0), call.result().shape));
}

Values run(const Transpose& op, const Call& call) {
  const auto rank = std::ssize(call.input(0).shape);
  Ints perm = op.perm;
  if (perm.empty()) {
    perm = counting(rank);
    std::reverse(perm.begin(), perm.end());
  }
  for (auto& axis : perm) axis = axis < 0 ? axis + rank : axis;
  return one(permuted(call.input(0), perm));
}

Values run(const Identity&, const Call& call) { return one(call.input(0)); }

Values run(const Dropout&, const Call& call) {
  std::vector<Value> results{call.input(0)};
  if (call.results.size() > 1) {
    const std::vector<std::int64_t> kept(elements(call.results[1].shape), 1);
    results.push_back(write(call.results[1], kept));
  }
  return results;
}

Followed follow(const Dropout& op, Adaptation& adaptation) {
  if (adaptation.output_count() != 1) return std::nullopt;
  return op;
}

Result<Operator> read_onnx(const Dropout& op, NodeReader& reader) {
  if (reader.has_input(2)) {
    const auto training = reader.input_numbers(2);
    if (!training || training->empty() || training->front() != 0)
      return unknown(reader, "dropout in training mode");
  }
  reader.keep_inputs(1);
  return op;
}

constexpr std::size_t kMostDimensions = 16;

Result<Converted> convert_reshape(Conversion& c) {
  const auto* shape = c.shape(1);
  const bool has_input = c.input(1) != kNoTensor && (shape == nullptr || shape->size() == 1);
  if (has_input) {
    return Converted{.op = Reshape{.allow_zero = true}, .inputs = {c.input(0), c.input(1)}};
  }
  const auto given = c.options("ReshapeOptions").list("new_shape", kMostDimensions);
  if (!given) return not_known("its new shape is not known");
  if (given->is_long) return refuse("its new shape has too many dimensions");
  auto values = given->values;
  if (values == Ints{0}) values.clear();  // how old files write a scalar
  return Converted{.op = Reshape{.allow_zero = true},
                   .inputs = {c.input(0), c.add_ints("shape", values)}};
}

Result<Converted> convert_squeeze(Conversion& c) {
  const auto axes = c.options("SqueezeOptions").list("squeeze_dims", kMostDimensions);
  if (axes && axes->is_long) return refuse("it has too many axes");
  if (!axes || axes->values.empty()) return Converted{.op = Squeeze{}, .inputs = {c.input(0)}};
  return Converted{.op = Squeeze{}, .inputs = {c.input(0), c.add_ints("axes", axes->values)}};
}

Result<Converted> convert_expand_dims(Conversion& c) {
  const auto axis = c.integer(1);
  if (!axis) return not_known("its axis is not constant");
  return Converted{.op = Unsqueeze{}, .inputs = {c.input(0), c.add_ints("axes", {*axis})}};
}

Result<Converted> convert_transpose(Conversion& c) {
  auto perm = c.ints(1);
  if (!perm) return not_known("its permutation is not constant");
  return Converted{.op = Transpose{std::move(*perm)}, .inputs = {c.input(0)}};
}

/// An operator that gives the elements of its first input another shape.
constexpr OperatorTraits reshaping(OperatorTraits t) {
  t.run = keep_elements;
  t.only_moves = t.only_reshapes = true;
  if (t.hands_on == nullptr) t.hands_on = keeps_shape_of_first;
  t.link = linked<&ChannelLinks::reshape>;
  t.kernel_kind = "reshape";
  return t;
}

/// One that hands its first input on.
constexpr OperatorTraits unchanging(OperatorTraits t) {
  t.hands_on = always;
  t = reshaping(t);
  t.link = linked<&ChannelLinks::keep_shape>;
  return t;
}

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Transpose>({.number = 28,
                         .name = "Transpose",
                         .only_moves = true,
                         .kernel_kind = "transpose",
                         .onnx = {attribute<&Transpose::perm>("perm")}}),
    describe<Reshape>(reshaping({.number = 29,
                                 .name = "Reshape",
                                 .arity = {2, 2},
                                 .onnx = {attribute<&Reshape::allow_zero>("allowzero").if_set()},
                                 .was_attribute = {"shape", 1},
                                 .onnx_counts = {1}})),
    describe<Flatten>(
        reshaping({.number = 30, .name = "Flatten", .onnx = {attribute<&Flatten::axis>("axis")}})),
    describe<Squeeze>(reshaping({.number = 31,
                                 .name = "Squeeze",
                                 .arity = {1, 2},
                                 .was_attribute = {"axes", 1},
                                 .onnx_counts = {1}})),
    describe<Unsqueeze>(reshaping({.number = 32,
                                   .name = "Unsqueeze",
                                   .arity = {2, 2},
                                   .was_attribute = {"axes", 1},
                                   .onnx_counts = {1}})),
    describe<Identity>(unchanging(
        {.number = 50, .name = "Identity", .infer = infer_like_first, .follow = follow_unchanged})),
    describe<Dropout>(unchanging({.number = 51,
                                  .name = "Dropout",
                                  .arity = {1, 1, 2},
                                  .quantized = quantization::Role::floats})),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"RESHAPE", convert_reshape, {1, 2}},
    {"SQUEEZE", convert_squeeze},
    {"EXPAND_DIMS", convert_expand_dims, {2, 2}},
    {"TRANSPOSE", convert_transpose, {2, 2}},
});

}  // namespace

OperatorFamily reshaping_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
