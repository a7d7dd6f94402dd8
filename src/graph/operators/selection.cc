#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "graph/channel_links.h"
#include "graph/evaluate/kernels.h"
#include "graph/onnx/lowering.h"
#include "graph/onnx/node_writer.h"
#include "graph/onnx/onnx_node.h"
#include "graph/operands.h"
#include "graph/operators/identities.h"
#include "graph/operators/traits.h"
#include "graph/passes/layout_adaptation.h"
#include "graph/tflite/conversion.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

/// Number of steps from start towards end over an extent, ONNX's rules for negative and
/// overshooting bounds.
std::int64_t sliced_extent(std::int64_t extent, std::int64_t start, std::int64_t end,
                           std::int64_t step) {
  const auto from_end = [extent](std::int64_t bound) { return bound < 0 ? bound + extent : bound; };
  const bool forward = step > 0;
  const std::int64_t least = forward ? 0 : -1;
  const std::int64_t most = forward ? extent : extent - 1;
  start = std::clamp(from_end(start), forward ? least : 0,
                     std::max<std::int64_t>(most, forward ? least : 0));
  end = std::clamp(from_end(end), least, extent);
  const auto distance = forward ? end - start : start - end;
  if (distance <= 0 || extent == 0 || step == 0) return 0;
  // Negating the smallest step would overflow; any step beyond the distance gives one element.
  const auto stride = forward ? step : (step == INT64_MIN ? INT64_MAX : -step);
  return stride >= distance ? 1 : (distance + stride - 1) / stride;
}

Outcomes infer_slice(const Slice& op, const Node&, const Operands& in) {
  const auto starts = in.ints(1);
  const auto ends = in.ints(2);
  if (in.shape(0) == nullptr || !starts || !ends) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  Ints axes(starts->size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (in.has(3)) {
    const auto given = in.ints(3);
    if (!given) return open(in.dtype(0));
    axes = *given;
  }
  Ints steps(starts->size(), 1);
  if (in.has(4)) {
    const auto given = in.ints(4);
    if (!given) return open(in.dtype(0));
    steps = *given;
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size()) {
    return misfit("{} starts, {} ends, {} axes, {} steps", starts->size(), ends->size(),
                  axes.size(), steps.size());
  }
  FLEETFIT_TRY(resolve_axes(axes, shape.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) return misfit("a step of zero");
    auto& extent = shape[resolve_axis(axes[i], shape.size()).value()];
    extent = sliced_extent(extent, (*starts)[i], (*ends)[i], steps[i]);
  }
  FLEETFIT_ASSIGN(const auto squeezed, resolve_axes(op.squeezed, shape.size()));
  for (const auto axis : squeezed) {
    if (shape[axis] != 1)
      return misfit("dimension {} has {} elements and cannot be dropped", axis, shape[axis]);
  }
  return one(in.dtype(0), without_axes(shape, squeezed));
}

Outcomes infer_gather(const Gather& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr || in.shape(1) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, x.size()));
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Shape shape(x.begin(), x.begin() + at);
  shape.insert(shape.end(), in.shape(1)->begin(), in.shape(1)->end());
  shape.insert(shape.end(), x.begin() + at + 1, x.end());
  return one(in.dtype(0), shape);
}

Outcomes infer_where(const Where&, const Node&, const Operands& in) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (in.shape(i) == nullptr) return open(in.dtype(1));
  }
  FLEETFIT_ASSIGN(const auto values, broadcast(*in.shape(1), *in.shape(2)));
  FLEETFIT_ASSIGN(const auto all, broadcast(*in.shape(0), values));
  return one(in.dtype(1), all);
}

Outcomes infer_expand(const Expand&, const Node&, const Operands& in) {
  const auto wanted = in.ints(1);
  if (in.shape(0) == nullptr || !wanted) return open(in.dtype(0));
  FLEETFIT_TRY(element_count(*wanted));
  FLEETFIT_ASSIGN(const auto shape, broadcast(*in.shape(0), *wanted));
  return one(in.dtype(0), shape);
}

Outcomes infer_tile(const Tile&, const Node&, const Operands& in) {
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

void link_slice(const Slice& op, ChannelLinks& links) {
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

void link_gather(const Gather& op, ChannelLinks& links) {
  if (links.rank(links.in(1)) != 0) return links.pin_node();
  links.drop_axis(links.out(), axis_of(op.axis, links.rank(links.in(0))));
}

bool hands_on_slice(const Slice& op, const Graph& graph, const Node& node) {
  if (!op.squeezed.empty() || !keeps_shape(graph, node)) return false;
  // A negative step keeps the shape, but not the order.
  return !has_input(node, 4) || all_equal_to<std::int64_t>(ints_of(graph, node, 4), 1);
}

bool hands_on_tile(const Tile&, const Graph& graph, const Node& node) {
  return all_equal_to<std::int64_t>(ints_of(graph, node, 1), 1);
}

Ints ints_or(const Value* value, Ints otherwise) {
  return value != nullptr ? read<std::int64_t>(*value) : std::move(otherwise);
}

struct Range1d {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
};

/// What a slice takes of an extent: bounds count from the end where negative and stop at the ends.
Ints sliced(std::int64_t extent, Range1d range) {
  const auto clamped = [extent](std::int64_t bound, std::int64_t low, std::int64_t high) {
    return std::clamp(bound < 0 ? bound + extent : bound, low, high);
  };
  Ints indices;
  if (extent == 0) return indices;
  if (range.step > 0) {
    const auto end = clamped(range.end, 0, extent);
    auto at = clamped(range.start, 0, extent);
    while (at < end) {
      indices.push_back(at);
      if (range.step >= end - at) break;  // also keeps the sum from overflowing
      at += range.step;
    }
  } else {
    const auto end = clamped(range.end, -1, extent - 1);
    auto at = clamped(range.start, 0, extent - 1);
    while (at > end) {
      indices.push_back(at);
      if (range.step <= end - at) break;
      at += range.step;
    }
  }
  return indices;
}

Values run_slice(const Slice&, const Call& call) {
  const auto& x = call.input(0);
  const auto starts = read<std::int64_t>(call.input(1));
  const auto ends = read<std::int64_t>(call.input(2));
  const auto axes = ints_or(call.optional(3), counting(std::ssize(starts)));
  const auto steps = ints_or(call.optional(4), Ints(starts.size(), 1));
  auto indices = everything(x.shape);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    FLEETFIT_ASSIGN(const auto axis, resolve_axis(axes[i], x.shape.size()));
    indices[axis] = sliced(x.shape[axis], {starts[i], ends[i], steps[i]});
  }
  return one(reshaped(pick(x, std::move(indices)), call.result().shape));
}

Values run_gather(const Gather& op, const Call& call) {
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

Values run_where(const Where&, const Call& call) {
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

Values run_expand(const Expand&, const Call& call) {
  return one(broadcast(call.input(0), call.result().shape));
}

Values run_tile(const Tile&, const Call& call) {
  auto indices = everything(call.result().shape);
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    for (auto& index : indices[axis]) index %= call.input(0).shape[axis];
  }
  return one(pick(call.input(0), std::move(indices)));
}

Followed follow_slice(const Slice& op, Adaptation& adaptation) {
  if (!op.squeezed.empty() || !adaptation.place_axes()) return std::nullopt;
  return op;
}

/// An operator with one entry for each dimension at its second input.
template <class Op>
Followed follow_list(const Op& op, Adaptation& adaptation) {
  if (!adaptation.reorder(1, 1)) return std::nullopt;
  return op;
}

Result<Operator> convert_slice(NodeReader& reader) {
  if (reader.opset() < 10) {
    reader.set_input(1, "starts", reader.ints("starts"));
    reader.set_input(2, "ends", reader.ints("ends"));
    if (reader.has("axes")) reader.set_input(3, "axes", reader.ints("axes"));
  }
  return Slice{};
}

Status lower_slice(const Slice& op, Node& node, Lowering& out) {
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
  Ints axes(steps->size());
  std::iota(axes.begin(), axes.end(), 0);
  return Converted{.op = std::move(slice),
                   .inputs = {c.input(0), c.add_ints("starts", *starts), c.add_ints("ends", *ends),
                              c.add_ints("axes", axes), c.add_ints("steps", *steps)}};
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
                     .infer = rule<infer_slice>,
                     .run = rule<run_slice>,
                     .only_moves = true,
                     .hands_on = rule<hands_on_slice>,
                     .link = rule<link_slice>,
                     .follow = rule<follow_slice>,
                     .quantized = quantization::Role::moves,
                     .kernel_kind = "split",
                     .lower_onnx = rule<lower_slice>,
                     .onnx_counts = {1, 2, 3, 4}}),
    describe<Gather>({.number = 35,
                      .name = "Gather",
                      .arity = {2, 2},
                      .infer = rule<infer_gather>,
                      .run = rule<run_gather>,
                      .only_moves = true,
                      .link = rule<link_gather>,
                      .quantized = quantization::Role::moves,
                      .trained = {0},
                      .takes_any_factor = true,
                      .kernel_kind = "gather",
                      .write_onnx = rule<write_axis<Gather>>}),
    describe<Where>({.number = 18,
                     .name = "Where",
                     .arity = {3, 3},
                     .infer = rule<infer_where>,
                     .run = rule<run_where>,
                     .link = linked<&ChannelLinks::broadcast_all>,
                     .data_inputs = DataInputs::broadcast,
                     .follow = follow_unchanged,
                     .kernel_kind = "elementwise"}),
    describe<Expand>({.number = 33,
                      .name = "Expand",
                      .arity = {2, 2},
                      .infer = rule<infer_expand>,
                      .run = rule<run_expand>,
                      .only_moves = true,
                      .hands_on = keeps_shape_of_first,
                      .follow = rule<follow_list<Expand>>,
                      .quantized = quantization::Role::moves,
                      .trained = {0},
                      .takes_any_factor = true,
                      .kernel_kind = "gather",
                      .onnx_counts = {1}}),
    describe<Tile>({.number = 34,
                    .name = "Tile",
                    .arity = {2, 2},
                    .infer = rule<infer_tile>,
                    .run = rule<run_tile>,
                    .only_moves = true,
                    .hands_on = rule<hands_on_tile>,
                    .follow = rule<follow_list<Tile>>,
                    .quantized = quantization::Role::moves,
                    .kernel_kind = "gather",
                    .onnx_counts = {1}}),
});

constexpr auto kOnnx = std::to_array<OnnxReader>({
    {"Where", convert_plain<Where>},
    {"Slice", convert_slice},
    {"Expand", convert_plain<Expand>},
    {"Tile", convert_plain<Tile>},
    {"Gather", convert_axis<Gather, 0>},
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

OperatorFamily selection_family() {
  return {.operators = kOperators, .onnx = kOnnx, .tflite = kTflite};
}

}  // namespace fleetfit::graph
