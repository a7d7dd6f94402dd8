#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fleetfit/graph/shape_inference.h"
#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

Result<Shape> shape_of(const BatchNorm& op, const Shape& x, const Operands& in) {
  if (x.size() < 2) return misfit("{} has no channels", to_string(x));
  const auto channels = x[channel_axis(x, op.layout)];
  for (std::size_t i = 1; i < 5; ++i) {
    if (in.shape(i) != nullptr && elements(*in.shape(i)) != channels) {
      return misfit("{} values for {} channels", elements(*in.shape(i)), channels);
    }
  }
  return x;
}

Outcomes infer(const LayerNorm& op, const Operands& in) {
  const auto* x = in.shape(0);
  if (x == nullptr) return open(in.dtype(0));
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, x->size()));
  auto statistics = *x;
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(axis), statistics.end(), 1);
  const Shape normalized(x->begin() + static_cast<std::ptrdiff_t>(axis), x->end());
  for (std::size_t i = 1; i < 3; ++i) {
    if (in.shape(i) != nullptr) {
      const auto scaled = broadcast(normalized, *in.shape(i));
      if (!scaled || *scaled != normalized)
        return misfit("scale {} for {}", to_string(*in.shape(i)), to_string(normalized));
    }
  }
  return std::vector<Outcome>{
      {in.dtype(0), *x}, {DType::f32, statistics}, {DType::f32, statistics}};
}

Result<Shape> shape_of(const Softmax& op, const Shape& x) {
  if (const auto axis = resolve_axis(op.axis, x.size()); !axis && !x.empty())
    return tl::unexpected(axis.error());
  return x;
}

Result<Shape> shape_of(const LpNormalization& op, const Shape& x) {
  FLEETFIT_TRY(resolve_axis(op.axis, x.size()));
  return x;
}

void link(const BatchNorm& op, ChannelLinks& links) {
  links.normalize(links.channel_axis_of(links.in(0), op.layout));
}

void link(const InstanceNorm&, ChannelLinks& links) { links.normalize(1); }

void link(const LayerNorm& op, ChannelLinks& links) {
  if (links.node().outputs.size() > 1) return links.pin_node();
  links.keep_shape();
  for (std::size_t a = axis_of(op.axis, links.rank(links.out())); a < links.rank(links.out()); ++a)
    links.pin(links.out(), a);
  for (std::size_t i = 1; i < links.node().inputs.size(); ++i) links.pin_input(i);
}

void link(const Softmax& op, ChannelLinks& links) {
  links.keep_shape();
  const std::size_t first = axis_of(op.axis, links.rank(links.out()));
  const std::size_t end = op.to_end ? links.rank(links.out()) : first + 1;
  for (std::size_t a = first; a < end; ++a) links.pin(links.out(), a);
}

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments moments(std::span<const double> numbers) {
  const auto count = static_cast<double>(numbers.size());
  Moments m;
  for (const auto number : numbers) m.mean += number / count;
  for (const auto number : numbers) m.variance += (number - m.mean) * (number - m.mean) / count;
  return m;
}

/// Runs of elements along one axis: element k of run (i, j) is at (i * extent + k) * inner + j.
struct Along {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;
};

Along along(const Shape& shape, std::size_t axis) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  return {elements(Shape(shape.begin(), at)), *at, elements(Shape(at + 1, shape.end()))};
}

/// Replaces every run by what `change` makes of it.
template <class Change>
void change_runs(std::vector<double>& numbers, const Along& a, Change&& change) {
  std::vector<double> run(a.extent);
  for (std::int64_t i = 0; i < a.outer; ++i) {
    for (std::int64_t j = 0; j < a.inner; ++j) {
      double* first = numbers.data() + i * a.extent * a.inner + j;
      for (std::int64_t k = 0; k < a.extent; ++k) run[k] = first[k * a.inner];
      change(run);
      for (std::int64_t k = 0; k < a.extent; ++k) first[k * a.inner] = run[k];
    }
  }
}

void softmax(std::vector<double>& run) {
  const double highest = *std::max_element(run.begin(), run.end());
  double sum = 0;
  for (auto& x : run) sum += x = std::exp(x - highest);
  for (auto& x : run) x /= sum;
}

void log_softmax(std::vector<double>& run) {
  const double highest = *std::max_element(run.begin(), run.end());
  double sum = 0;
  for (const auto x : run) sum += std::exp(x - highest);
  for (auto& x : run) x -= highest + std::log(sum);
}

void divide_by_norm(std::vector<double>& run, std::int64_t p) {
  double norm = 0;
  for (const auto x : run) norm += p == 1 ? std::abs(x) : x * x;
  if (p != 1) norm = std::sqrt(norm);
  if (norm == 0) return;
  for (auto& x : run) x /= norm;
}

void normalize_response(std::vector<double>& run, const Lrn& op) {
  const auto before = run;
  const auto count = static_cast<std::int64_t>(run.size());
  // An even window reaches one further to the back.
  const auto below = (op.size - 1) / 2;
  const auto above = op.size - 1 - below;
  for (std::int64_t c = 0; c < count; ++c) {
    double squares = 0;
    const auto last = above < count - c ? c + above : count - 1;
    for (auto i = std::max<std::int64_t>(0, c - below); i <= last; ++i) {
      squares += before[i] * before[i];
    }
    const double scaled = op.bias + op.alpha / static_cast<double>(op.size) * squares;
    run[c] = before[c] / std::pow(scaled, op.beta);
  }
}

Values run(const BatchNorm& op, const Call& call) {
  auto x = read<double>(call.input(0));
  const auto scale = read<double>(call.input(1));
  const auto shift = read<double>(call.input(2));
  const auto mean = read<double>(call.input(3));
  const auto variance = read<double>(call.input(4));
  const auto& shape = call.input(0).shape;
  const auto a = along(shape, op.layout == Layout::nchw ? 1 : shape.size() - 1);
  for (std::int64_t run = 0; run < a.outer * a.extent; ++run) {
    const auto c = run % a.extent;
    const double factor = scale[c] / std::sqrt(variance[c] + op.epsilon);
    double* first = x.data() + run * a.inner;
    for (std::int64_t i = 0; i < a.inner; ++i) first[i] = (first[i] - mean[c]) * factor + shift[c];
  }
  return one(write(call.result(), x));
}

Values run(const InstanceNorm& op, const Call& call) {
  auto x = read<double>(call.input(0));
  const auto scale = read<double>(call.input(1));
  const auto shift = read<double>(call.input(2));
  const auto& shape = call.input(0).shape;
  if (shape.size() < 2) return misfit("{} has no channels", to_string(shape));
  const auto a = along(shape, 1);
  if (std::ssize(scale) != a.extent || std::ssize(shift) != a.extent) {
    return misfit("{} scales for {} channels", scale.size(), a.extent);
  }
  for (std::int64_t run = 0; run < a.outer * a.extent; ++run) {
    const std::span image(x.data() + run * a.inner, a.inner);
    const auto m = moments(image);
    const double factor = scale[run % a.extent] / std::sqrt(m.variance + op.epsilon);
    for (auto& number : image) number = (number - m.mean) * factor + shift[run % a.extent];
  }
  return one(write(call.result(), x));
}

Values run(const LayerNorm& op, const Call& call) {
  const auto& shape = call.input(0).shape;
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, shape.size()));
  const Shape normalized(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end());
  FLEETFIT_ASSIGN(const auto scale_value, broadcast(call.input(1), normalized));
  const auto scale = read<double>(scale_value);
  std::vector<double> shift(scale.size(), 0);
  if (call.optional(2) != nullptr) {
    FLEETFIT_ASSIGN(const auto shift_value, broadcast(call.input(2), normalized));
    shift = read<double>(shift_value);
  }

  auto x = read<double>(call.input(0));
  std::vector<double> means;
  std::vector<double> inverse_deviations;
  const auto runs =
      elements(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)));
  for (std::int64_t n = 0; n < runs; ++n) {
    const std::span run(x.data() + n * scale.size(), scale.size());
    const auto m = moments(run);
    means.push_back(m.mean);
    inverse_deviations.push_back(1 / std::sqrt(m.variance + op.epsilon));
    for (std::size_t i = 0; i < run.size(); ++i) {
      run[i] = (run[i] - m.mean) * inverse_deviations.back() * scale[i] + shift[i];
    }
  }
  std::vector<Value> results{write(call.result(), x)};
  if (call.results.size() > 1) results.push_back(write(call.results[1], means));
  if (call.results.size() > 2) results.push_back(write(call.results[2], inverse_deviations));
  return results;
}

Values run(const Lrn& op, const Call& call) {
  if (op.size < 1) return misfit("a window of {} channels", op.size);
  auto x = read<double>(call.input(0));
  const auto& shape = call.input(0).shape;
  if (shape.size() < 2) return misfit("{} has no channels", to_string(shape));
  const auto axis = op.layout == Layout::nchw ? std::size_t{1} : shape.size() - 1;
  change_runs(x, along(shape, axis),
              [&](std::vector<double>& run) { normalize_response(run, op); });
  return one(write(call.result(), x));
}

Values run(const LpNormalization& op, const Call& call) {
  auto x = read<double>(call.input(0));
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.input(0).shape.size()));
  change_runs(x, along(call.input(0).shape, axis),
              [&](std::vector<double>& run) { divide_by_norm(run, op.p); });
  return one(write(call.result(), x));
}

Values run(const Softmax& op, const Call& call) {
  auto x = read<double>(call.input(0));
  auto shape = call.input(0).shape;
  if (shape.empty()) shape = {1};
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, shape.size()));
  auto a = along(shape, axis);
  if (op.to_end) a = {a.outer, a.extent * a.inner, 1};
  if (!x.empty()) change_runs(x, a, op.log ? log_softmax : softmax);
  return one(write(call.result(), x));
}

Followed follow(const Softmax& op, Adaptation& adaptation) {
  const bool one_axis = !op.to_end || normalized_axis(op.axis, adaptation.rank()) + 1 ==
                                          static_cast<std::int64_t>(adaptation.rank());
  if (!one_axis) return std::nullopt;
  auto adapted = op;
  adapted.to_end = false;
  return follow_axis(adapted, adaptation);
}

Result<Operator> read_onnx(const BatchNorm& op, NodeReader& reader) {
  if (reader.integer("training_mode", 0) != 0)
    return unknown(reader, "batch normalization in training mode");
  if (reader.integer("spatial", 1) != 1) return unknown(reader, "batch normalization per element");
  // Further outputs are statistics of training.
  if (reader.node().outputs.size() > 1) reader.node().outputs.resize(1);
  return op;
}

Result<Operator> read_onnx(Softmax op, NodeReader& reader) {
  // Before opset 13 all dimensions from the axis on were taken together.
  const bool to_end = reader.opset() < 13;
  op.axis = reader.integer("axis", to_end ? 1 : -1);
  op.to_end = to_end && op.axis != -1;
  return op;
}

Status lower_onnx(const Softmax& op, Node& node, Lowering& out) {
  const auto shape = out.tensor(node.inputs[0]).shape;
  if (!op.to_end || !shape || shape->empty()) return out.keep(std::move(node));
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto axis = op.axis < 0 ? op.axis + rank : op.axis;
  const bool single = elements({shape->begin() + axis + 1, shape->end()}) == 1;
  const Shape& whole = *shape;
  node.op = Softmax{.axis = single ? axis : 1, .log = op.log};
  if (single) return out.keep(std::move(node));
  node.inputs[0] = out.step(node, "flat", Flatten{axis}, {node.inputs[0]});
  const auto result = std::exchange(node.outputs[0], out.fresh(node, "rows"));
  const Node near{.name = node.name};
  const auto rows = node.outputs[0];
  FLEETFIT_TRY(out.keep(std::move(node)));
  out.emit(near, "whole", Reshape{}, {rows, out.ints(near, "whole_shape", whole)}, result);
  return {};
}

Result<Converted> convert_softmax(Conversion& c) {
  const float beta = c.options("SoftmaxOptions").number("beta");
  if (beta != 1) return not_known(fmt::format("its beta is {}, not 1", beta));
  return Converted{.op = Softmax{.axis = -1}, .inputs = {c.input(0)}};
}

Result<Converted> convert_log_softmax(Conversion& c) {
  return Converted{.op = Softmax{.axis = -1, .log = true}, .inputs = {c.input(0)}};
}

Result<Converted> convert_l2_normalization(Conversion& c) {
  const auto activation = fused(c.options("L2NormOptions"));
  if (!activation) return not_known(std::string(kUnknownActivation));
  return Converted{
      .op = LpNormalization{.axis = -1, .p = 2}, .inputs = {c.input(0)}, .activation = *activation};
}

Result<Converted> convert_local_response_normalization(Conversion& c) {
  const auto options = c.options("LocalResponseNormalizationOptions");
  if (!options) return refuse(std::string(kNoOptions));
  if (options.integer("radius") < 0) return refuse("its radius is negative");
  // The graph's operator divides alpha by the size, the file's does not.
  const auto size = 2 * options.integer("radius") + 1;
  return Converted{.op = Lrn{.size = size,
                             .alpha = options.number("alpha") * static_cast<float>(size),
                             .beta = options.number("beta"),
                             .bias = options.number("bias"),
                             .layout = Layout::nhwc},
                   .inputs = {c.input(0)}};
}

/// Scale and shift of the result, at inputs 1 and 2, are trained.
constexpr OperatorTraits scaled(OperatorTraits t) {
  t.trained = {1, 2};
  t.kernel_kind = "normalization";
  return t;
}

constexpr std::array<std::string_view, 2> kSoftmaxNames = {"Softmax", "LogSoftmax"};

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<BatchNorm>(scaled({.number = 6,
                                .name = "BatchNormalization",
                                .arity = {5, 5},
                                .onnx = {attribute<&BatchNorm::epsilon>("epsilon")}})),
    describe<InstanceNorm>(scaled({.number = 7,
                                   .name = "InstanceNormalization",
                                   .arity = {3, 3},
                                   .infer = infer_like_first,
                                   .onnx = {attribute<&InstanceNorm::epsilon>("epsilon")}})),
    describe<LayerNorm>(scaled({.number = 8,
                                .name = "LayerNormalization",
                                .arity = {2, 3, 3},
                                .onnx = {attribute<&LayerNorm::axis>("axis"),
                                         attribute<&LayerNorm::epsilon>("epsilon")}})),
    describe<Lrn>({.number = 12,
                   .name = "LRN",
                   .infer = infer_like_first,
                   .kernel_kind = "normalization",
                   .onnx = {attribute<&Lrn::size>("size"), attribute<&Lrn::alpha>("alpha"),
                            attribute<&Lrn::beta>("beta"), attribute<&Lrn::bias>("bias")}}),
    describe<LpNormalization>(
        {.number = 13,
         .name = "LpNormalization",
         .follow = rule<follow_axis<LpNormalization>>,
         .kernel_kind = "normalization",
         .onnx = {attribute<&LpNormalization::axis>("axis"), attribute<&LpNormalization::p>("p")}}),
    describe<Softmax>({.number = 14,
                       .kinds = names_by<&Softmax::log>(kSoftmaxNames),
                       .kernel_kind = "softmax",
                       .onnx = {attribute<&Softmax::axis>("axis")}}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"SOFTMAX", convert_softmax},
    {"LOG_SOFTMAX", convert_log_softmax},
    {"L2_NORMALIZATION", convert_l2_normalization},
    {"LOCAL_RESPONSE_NORMALIZATION", convert_local_response_normalization},
});

}  // namespace

OperatorFamily normalization_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
