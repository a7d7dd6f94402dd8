#include <algorithm>
#include <array>
#include <limits>

#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

/// What a slice takes of an extent: so many indices from the first on, a step between them.
struct Taken {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// By ONNX's rules for bounds that are negative or overshoot. The step is not 0.
Taken taken(std::int64_t extent, std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto from_end = [extent](std::int64_t bound) { return bound < 0 ? bound + extent : bound; };
  const bool forward = step > 0;
  start = std::clamp<std::int64_t>(from_end(start), 0,
                                   forward ? extent : std::max<std::int64_t>(extent - 1, 0));
  end = std::clamp<std::int64_t>(from_end(end), forward ? 0 : -1, extent);
  const auto distance = forward ? end - start : start - end;
  if (distance <= 0 || extent == 0) return {};
  // Negating the smallest step would overflow; any step beyond the distance gives one element.
  const auto stride = forward ? step : (step == INT64_MIN ? INT64_MAX : -step);
  return {start, stride >= distance ? 1 : (distance + stride - 1) / stride};
}

Outcomes infer(const Slice& op, const Operands& in) {
  const auto starts = in.ints(1);
  const auto ends = in.ints(2);
  if (in.shape(0) == nullptr || !starts || !ends) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  const auto axes = in.has(3) ? in.ints(3) : std::optional(counting(std::ssize(*starts)));
  const auto steps = in.has(4) ? in.ints(4) : std::optional(Ints(starts->size(), 1));
  if (!axes || !steps) return open(in.dtype(0));
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size()) {
    return misfit("{} starts, {} ends, {} axes, {} steps", starts->size(), ends->size(),
                  axes->size(), steps->size());
  }
  FLEETFIT_TRY(resolve_axes(*axes, shape.size()));
  for (std::size_t i = 0; i < axes->size(); ++i) {
    if ((*steps)[i] == 0) return misfit("a step of zero");
    auto& extent = shape[resolve_axis((*axes)[i], shape.size()).value()];
    extent = taken(extent, (*starts)[i], (*ends)[i], (*steps)[i]).count;
  }
  FLEETFIT_ASSIGN(const auto squeezed, resolve_axes(op.squeezed, shape.size()));
  for (const auto axis : squeezed) {
    if (shape[axis] != 1)
      return misfit("dimension {} has {} elements and cannot be dropped", axis, shape[axis]);
  }
  return one(in.dtype(0), without_axes(shape, squeezed));
}

Outcomes infer(const Gather& op, const Operands& in) {
  if (in.shape(0) == nullptr || in.shape(1) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, x.size()));
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Shape shape(x.begin(), x.begin() + at);
  shape.insert(shape.end(), in.shape(1)->begin(), in.shape(1)->end());
  shape.insert(shape.end(), x.begin() + at + 1, x.end());
  return one(in.dtype(0), shape);
}

Outcomes infer(const Where&, const Operands& in) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (in.shape(i) == nullptr) return open(in.dtype(1));
  }
  FLEETFIT_ASSIGN(const auto values, broadcast(*in.shape(1), *in.shape(2)));
  FLEETFIT_ASSIGN(const auto all, broadcast(*in.shape(0), values));
  return one(in.dtype(1), all);
}

Outcomes infer(const Expand&, const Operands& in) {
  const auto wanted = in.ints(1);
  if (in.shape(0) == nullptr || !wanted) return open(in.dtype(0));
  FLEETFIT_TRY(element_count(*wanted));
  FLEETFIT_ASSIGN(const auto shape, broadcast(*in.shape(0), *wanted));
  return one(in.dtype(0), shape);
}

Outcomes infer(const Tile&, const Operands& in) {
  const auto repeats = in.ints(1);
  if (in.shape(0) == nullptr || !repeats) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  if (repeats->size() != shape.size())
    return misfit("{} repeats for {} dimensions", repeats->size(), shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if ((*repeats)[i] < 0 || __builtin_mul_overflow(shape[i], (*repeats)[i], &shape[i])) {
      return misfit("{} repeats", (*repeats)[i]);
    }
  }
  return one(in.dtype(0), shape);
}

void link(const Slice& op, ChannelLinks& links) {
  if (!op.squeezed.empty()) return links.pin_node();
  // Which positions are taken is left to the indices: only axes that stay whole can shrink.
  for (std::size_t a = 0; a < links.rank(links.out()); ++a) {
    if (links.extent(links.in(0), a) == links.extent(links.out(), a)) {
      links.same(links.in(0), a, links.out(), a);
    } else {
      links.pin(links.in(0), a);
      links.pin(links.out(), a);
    }
  }
}

void link(const Gather& op, ChannelLinks& links) {
  if (links.rank(links.in(1)) != 0) return links.pin_node();
  links.drop_axis(links.out(), axis_of(op.axis, links.rank(links.in(0))));
}

bool hands_on(const Slice& op, const Graph& graph, const Node& node) {
  if (!op.squeezed.empty() || !keeps_shape(graph, node)) return false;
  // A negative step keeps the shape, but not the order.
  return !has_input(node, 4) || all_equal_to<std::int64_t>(ints_of(graph, node, 4), 1);
}

bool hands_on(const Tile&, const Graph& graph, const Node& node) {
  return all_equal_to<std::int64_t>(ints_of(graph, node, 1), 1);
}

Ints ints_or(const Value* value, Ints otherwise) {
  return value != nullptr ? read<std::int64_t>(*value) : std::move(otherwise);
}

Values run(const Slice&, const Call& call) {
  const auto& x = call.input(0);
  const auto starts = read<std::int64_t>(call.input(1));
  const auto ends = read<std::int64_t>(call.input(2));
  const auto axes = ints_or(call.optional(3), counting(std::ssize(starts)));
  const auto steps = ints_or(call.optional(4), Ints(starts.size(), 1));
  auto indices = everything(x.shape);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    FLEETFIT_ASSIGN(const auto axis, resolve_axis(axes[i], x.shape.size()));
    const auto part = taken(x.shape[axis], starts[i], ends[i], steps[i]);
    indices[axis] = counting(part.count);
    for (auto& index : indices[axis]) index = part.first + index * steps[i];
  }
  return one(reshaped(pick(x, std::move(indices)), call.result().shape));
}

Values run(const Gather& op, const Call& call) {
  const auto& x = call.input(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, x.shape.size()));
  auto chosen = read<std::int64_t>(call.input(1));
  const auto extent = x.shape[axis];
  for (auto& index : chosen) {
    if (index < -extent || index >= extent) {
      return misfit("there is no index {} among {}", index, extent);
    }
    if (index < 0) index += extent;
  }
  auto indices = everything(x.shape);
  indices[axis] = std::move(chosen);
  return one(reshaped(pick(x, std::move(indices)), call.result().shape));
}

Values run(const Where&, const Call& call) {
  const auto& shape = call.result().shape;
  const auto condition = broadcast(call.input(0), shape);
  const auto yes = broadcast(call.input(1), shape);
  const auto no = broadcast(call.input(2), shape);
  if (!condition || !yes || !no) return misfit("operands do not go together");
  if (yes->dtype != no->dtype) return misfit("the two choices are of different types");
  const auto chosen = read<std::int64_t>(*condition);
  // The two side by side, of which each element takes one.
  std::vector<std::byte> both(yes->data.bytes().begin(), yes->data.bytes().end());
  both.insert(both.end(), no->data.bytes().begin(), no->data.bytes().end());
  const auto count = static_cast<std::int64_t>(chosen.size());
  Ints places(chosen.size());
  for (std::int64_t i = 0; i < count; ++i) places[i] = chosen[i] != 0 ? i : count + i;
  const Value source{yes->dtype, {2 * count}, TensorData::own(std::move(both)), {}};
  return one(reshaped(take(source, {places}), shape));
}

Values run(const Expand&, const Call& call) {
  return one(broadcast(call.input(0), call.result().shape));
}

Values run(const Tile&, const Call& call) {
  auto indices = everything(call.result().shape);
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    for (auto& index : indices[axis]) index %= call.input(0).shape[axis];
  }
  return one(pick(call.input(0), std::move(indices)));
}

Followed follow(const Slice& op, Adaptation& adaptation) {
  if (!op.squeezed.empty() || !adaptation.place_axes()) return std::nullopt;
  return op;
}

/// An operator with one entry for each dimension at its second input.
template <class Op>
Followed follow_list(const Op& op, Adaptation& adaptation) {
  if (!adaptation.reorder(1, 1)) return std::nullopt;
  return op;
}

Result<Operator> read_onnx(const Slice& op, NodeReader& reader) {
  if (reader.opset() < 10) {
    reader.set_input(1, "starts", reader.ints("starts"));
    reader.set_input(2, "ends", reader.ints("ends"));
    if (reader.has("axes")) reader.set_input(3, "axes", reader.ints("axes"));
  }
  return op;
}

Status lower_onnx(const Slice& op, Node& node, Lowering& out) {
  if (op.squeezed.empty()) return out.keep(std::move(node));
  const auto axes = op.squeezed;
  const auto cut = out.fresh(node, "cut", out.tensor(node.outputs[0]).dtype);
  const auto result = std::exchange(node.outputs[0], cut);
  const Node near{.name = node.name};
  node.op = Slice{};
  FLEETFIT_TRY(out.keep(std::move(node)));
  out.emit(near, "squeeze", Squeeze{}, {cut, out.ints(near, "squeezed_axes", axes)}, result);
  return {};
}

constexpr auto kToTheEnd = std::numeric_limits<std::int64_t>::max();

constexpr auto kToTheStart = std::numeric_limits<std::int64_t>::min();

bool has_bit(std::int64_t mask, std::size_t i) {
  return (static_cast<std::uint32_t>(mask) >> i & 1U) != 0;
}

Result<Converted> convert_slice(Conversion& c) {
  const auto begin = c.ints(1);
  const auto size = c.ints(2);
  if (!begin || !size) return not_known("its begin or size is not constant");
  if (begin->size() != size->size()) return refuse("its begin and size differ in length");
  Ints ends;
  for (std::size_t i = 0; i < begin->size(); ++i) {
    std::int64_t end = 0;
    if ((*begin)[i] < 0 || (*size)[i] < -1 || __builtin_add_overflow((*begin)[i], (*size)[i], &end))
      return refuse("its begin or size is out of range");
    ends.push_back((*size)[i] == -1 ? kToTheEnd : end);
  }
  return Converted{.op = Slice{},
                   .inputs = {c.input(0), c.add_ints("starts", *begin), c.add_ints("ends", ends)}};
}

Result<Converted> convert_strided_slice(Conversion& c) {
  const auto options = c.options("StridedSliceOptions");
  if (!options) return refuse("it has no options");
  if (options.integer("ellipsis_mask") != 0) return not_known("it has an ellipsis mask");
  if (options.integer("new_axis_mask") != 0) return not_known("it has a mask of new axes");
  auto starts = c.ints(1);
  auto ends = c.ints(2);
  const auto steps = c.ints(3);
  if (!starts || !ends || !steps) return not_known("its begin, end or strides are not constant");
  if (starts->size() != ends->size() || starts->size() != steps->size() || starts->size() > 16)
    return refuse("its begin, end and strides do not fit each other");

  Slice slice;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    const bool forward = (*steps)[i] > 0;
    auto& start = (*starts)[i];
    auto& end = (*ends)[i];
    if ((*steps)[i] == 0) return refuse("one of its strides is 0");
    if (options.flag("offset") && __builtin_add_overflow(start, end, &end))
      return refuse("its end is out of range");
    if (has_bit(options.integer("shrink_axis_mask"), i)) {
      if (!forward) return refuse("it drops an axis that it goes through backwards");
      if (has_bit(options.integer("begin_mask"), i)) start = 0;
      if (start == kToTheEnd) return refuse("its begin is out of range");
      end = start == -1 ? kToTheEnd : start + 1;
      slice.squeezed.push_back(static_cast<std::int64_t>(i));
      continue;
    }
    if (has_bit(options.integer("begin_mask"), i)) start = forward ? 0 : kToTheEnd;
    if (has_bit(options.integer("end_mask"), i)) end = forward ? kToTheEnd : kToTheStart;
  }
  return Converted{
      .op = std::move(slice),
      .inputs = {c.input(0), c.add_ints("starts", *starts), c.add_ints("ends", *ends),
                 c.add_ints("axes", counting(std::ssize(*steps))), c.add_ints("steps", *steps)}};
}

Result<Converted> convert_gather(Conversion& c) {
  const auto options = c.options("GatherOptions");
  if (options.integer("batch_dims") != 0) return not_known("it gathers per batch");
  return Converted{.op = Gather{options.integer("axis")}, .inputs = c.inputs};
}

Result<Converted> convert_select(Conversion& c) {
  // A condition of one dimension chooses whole rows here, which is no broadcasting of the graph's.
  const auto* condition = c.shape(0);
  const auto* values = c.shape(1);
  if (condition == nullptr || values == nullptr)
    return not_known("the shape of its condition is not known");
  if (condition->size() == 1 && values->size() > 1) return not_known("it chooses whole rows");
  return convert_plain<Where>(c);
}

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Slice>({.number = 25,
                     .name = "Slice",
                     .arity = {3, 5},
                     .only_moves = true,
                     .kernel_kind = "split",
                     .onnx_counts = {1, 2, 3, 4}}),
    describe<Gather>({.number = 35,
                      .name = "Gather",
                      .arity = {2, 2},
                      .only_moves = true,
                      .trained = {0},
                      .takes_any_factor = true,
                      .kernel_kind = "gather",
                      .onnx = {attribute<&Gather::axis>("axis")}}),
    describe<Where>(broadcast_elementwise({.number = 18, .name = "Where", .arity = {3, 3}})),
    describe<Expand>({.number = 33,
                      .name = "Expand",
                      .arity = {2, 2},
                      .only_moves = true,
                      .hands_on = keeps_shape_of_first,
                      .follow = rule<follow_list<Expand>>,
                      .trained = {0},
                      .takes_any_factor = true,
                      .kernel_kind = "gather",
                      .onnx_counts = {1}}),
    describe<Tile>({.number = 34,
                    .name = "Tile",
                    .arity = {2, 2},
                    .only_moves = true,
                    .follow = rule<follow_list<Tile>>,
                    .kernel_kind = "gather",
                    .onnx_counts = {1}}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"SELECT", convert_select, {3, 3}},
    {"SELECT_V2", convert_plain<Where>, {3, 3}},
    {"SLICE", convert_slice, {3, 3}},
    {"STRIDED_SLICE", convert_strided_slice, {4, 4}},
    {"TILE", convert_plain<Tile>, {2, 2}},
    {"BROADCAST_TO", convert_plain<Expand>, {2, 2}},
    {"GATHER", convert_gather, {2, 2}},
});

}  // namespace

OperatorFamily selection_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
