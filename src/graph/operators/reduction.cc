#include <array>
#include <set>

#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

constexpr std::array<std::string_view, 10> kReduceNames = {
    "ReduceMean", "ReduceSum", "ReduceMax",       "ReduceMin",    "ReduceProd",
    "ReduceL1",   "ReduceL2",  "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"};

/// Shape after the given axes were reduced to one element each.
Shape reduced(const Shape& x, const std::set<std::size_t>& axes, bool keep_dims) {
  if (!keep_dims) return without_axes(x, axes);
  Shape shape = x;
  for (const auto axis : axes) shape[axis] = 1;
  return shape;
}

Result<Shape> shape_of(const Reduce& op, const Shape& x) {
  FLEETFIT_ASSIGN(auto axes, resolve_axes(op.axes, x.size()));
  if (op.axes.empty()) {
    for (std::size_t i = 0; i < x.size(); ++i) axes.insert(i);
  }
  return reduced(x, axes, op.keep_dims);
}

Outcomes infer(const ArgExtreme& op, const Operands& in) {
  if (in.shape(0) == nullptr) return open(op.index_type);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, in.shape(0)->size()));
  return one(op.index_type, reduced(*in.shape(0), {axis}, op.keep_dims));
}

Outcomes infer(const TopK& op, const Operands& in) {
  std::vector<Outcome> outcomes{{in.dtype(0), std::nullopt}, {DType::i64, std::nullopt}};
  const auto k = in.ints(1);
  if (in.shape(0) == nullptr || !k) return outcomes;
  Shape shape = *in.shape(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, shape.size()));
  if (k->size() != 1 || k->front() < 0 || k->front() > shape[axis])
    return misfit("the top {} of {}", to_string(*k), shape[axis]);
  shape[axis] = k->front();
  outcomes[0].shape = outcomes[1].shape = shape;
  return outcomes;
}

void link(const Reduce& op, ChannelLinks& links) {
  std::vector<bool> reduced(links.rank(links.in(0)), op.axes.empty());
  for (const auto axis : op.axes) reduced[axis_of(axis, links.rank(links.in(0)))] = true;
  std::size_t to = 0;
  for (std::size_t a = 0; a < links.rank(links.in(0)); ++a) {
    if (reduced[a]) {
      links.pin(links.in(0), a);
      if (op.keep_dims) links.pin(links.out(), to++);
    } else {
      links.same(links.in(0), a, links.out(), to++);
    }
  }
}

std::string_view kernel_kind_of(const Reduce& op) {
  return op.kind == ReduceKind::mean ? "mean" : "reduce";
}

quantization::Role role_of(const Reduce& op, const Graph&, const Node&) {
  return op.kind == ReduceKind::mean ? quantization::Role::computes : quantization::Role::floats;
}

Followed follow(const Reduce& op, Adaptation& adaptation) {
  auto adapted = op;
  for (auto& axis : adapted.axes) axis = adaptation.placed(axis);
  adaptation.plain_result = !op.keep_dims;
  if (!op.axes.empty() && !op.keep_dims && !adaptation.keeps_order(adapted.axes)) {
    return std::nullopt;
  }
  return adapted;
}

Followed follow(const ArgExtreme& op, Adaptation& adaptation) {
  return op.keep_dims ? follow_axis(op, adaptation) : std::nullopt;
}

Result<Operator> read_onnx(Reduce reduce, NodeReader& reader) {
  reduce.axes = reader.ints("axes");
  reduce.keep_dims = reader.integer("keepdims", 1) != 0;
  if (reader.has_input(1)) {
    const auto axes = reader.input_ints(1);
    if (!axes) return unknown(reader, "its axes are computed at run time");
    reduce.axes = *axes;
  }
  reader.keep_inputs(1);
  if (reduce.axes.empty() && reader.integer("noop_with_empty_axes", 0) != 0) return Identity{};
  return reduce;
}

Result<Operator> read_onnx(const TopK& op, NodeReader& reader) {
  if (reader.has("k")) reader.set_input(1, "k", Ints{reader.integer("k", 1)});
  return op;
}

void write_onnx(const Reduce& op, NodeWriter& out) {
  out.set("keepdims", op.keep_dims);
  if (op.axes.empty()) return;
  if (op.kind == ReduceKind::sum) {
    out.add_input("axes", {.dtype = DType::i64,
                           .shape = Shape{std::ssize(op.axes)},
                           .data = TensorData::copy(op.axes)});
  } else {
    out.set("axes", op.axes);
  }
}

Status lower_onnx(const ArgExtreme& op, Node& node, Lowering& out) {
  return out.keep_with_index_type(op, std::move(node));
}

Status lower_onnx(const TopK&, Node& node, Lowering& out) {
  if (node.outputs.size() < 2 || node.outputs[1] == kNoTensor ||
      out.tensor(node.outputs[1]).dtype != DType::i32) {
    return out.keep(std::move(node));
  }
  return out.keep_narrowed(std::move(node), 1, DType::i32);
}

template <ReduceKind kind>
Result<Converted> convert_reduce(Conversion& c) {
  const auto axes = c.ints(1);
  if (!axes) return not_known("its axes are not constant");
  if (axes->empty()) return not_known("it reduces over no axis");
  return Converted{.op = Reduce{kind, *axes, c.options("ReducerOptions").flag("keep_dims")},
                   .inputs = {c.input(0)}};
}

template <bool smallest>
Result<Converted> convert_arg_extreme(Conversion& c) {
  const auto options = c.options(smallest ? "ArgMinOptions" : "ArgMaxOptions");
  const auto axis = c.integer(1);
  if (!axis) return not_known("its axis is not constant");
  return Converted{
      .op = ArgExtreme{.smallest = smallest,
                       .axis = *axis,
                       .keep_dims = false,
                       .index_type = options ? options.type("output_type") : DType::i64},
      .inputs = {c.input(0)}};
}

Result<Converted> convert_topk_v2(Conversion& c) {
  const auto k = c.integer(1);
  return Converted{.op = TopK{.axis = -1},
                   .inputs = {c.input(0), k ? c.add_ints("k", {*k}) : c.input(1)}};
}

constexpr std::array<std::string_view, 2> kArgExtremeNames = {"ArgMax", "ArgMin"};

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Reduce>({.number = 43, .kinds = names_by<&Reduce::kind>(kReduceNames)}),
    describe<ArgExtreme>({.number = 44,
                          .kinds = names_by<&ArgExtreme::smallest>(kArgExtremeNames),
                          .kernel_kind = "reduce",
                          .onnx = {attribute<&ArgExtreme::axis>("axis"),
                                   attribute<&ArgExtreme::keep_dims>("keepdims"),
                                   attribute<&ArgExtreme::select_last>("select_last_index")}}),
    describe<TopK>({.number = 45,
                    .name = "TopK",
                    .arity = {2, 2, 2},
                    .kernel_kind = "reduce",
                    .onnx = {attribute<&TopK::axis>("axis"), attribute<&TopK::largest>("largest"),
                             attribute<&TopK::sorted>("sorted")},
                    .onnx_counts = {1}}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"MEAN", convert_reduce<ReduceKind::mean>, {2, 2}},
    {"SUM", convert_reduce<ReduceKind::sum>, {2, 2}},
    {"REDUCE_MAX", convert_reduce<ReduceKind::max>, {2, 2}},
    {"REDUCE_MIN", convert_reduce<ReduceKind::min>, {2, 2}},
    {"REDUCE_PROD", convert_reduce<ReduceKind::prod>, {2, 2}},
    {"ARG_MAX", convert_arg_extreme<false>, {2, 2}},
    {"ARG_MIN", convert_arg_extreme<true>, {2, 2}},
    {"TOPK_V2", convert_topk_v2, {2, 2, 2}},
});

}  // namespace

OperatorFamily reduction_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
