#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

using Kind = ElementwiseKind;

// --- BinaryOp

struct BinaryKind {
  Kind kind = Kind::add;
  bool is_reversed = false;
};

/// Indexed by op_type.
constexpr std::array<BinaryKind, 10> kBinaryKinds = {{{Kind::add},
                                                      {Kind::sub},
                                                      {Kind::mul},
                                                      {Kind::div},
                                                      {Kind::max},
                                                      {Kind::min},
                                                      {Kind::pow},
                                                      {Kind::sub, true},
                                                      {Kind::div, true},
                                                      {Kind::pow, true}}};

TensorId combine(Conversion& c, const BinaryKind& op, TensorId a, TensorId b) {
  if (op.is_reversed) std::swap(a, b);
  return c.add(Elementwise{.kind = op.kind}, {a, b});
}

void binary_op(Conversion& c) {
  const auto type = c.params().integer({.id = 0, .name = "op_type"});
  if (type >= static_cast<std::int64_t>(kBinaryKinds.size()))
    return c.unknown(fmt::format("BinaryOp {} is not supported", type));
  const auto& op = kBinaryKinds[static_cast<std::size_t>(type)];
  const auto a = c.blob(0);
  if (c.params().flag(1, "with_scalar")) {
    const auto b = c.scalar("b", c.params().number(2, "b", 0));
    return output_like(c, combine(c, op, a.tensor, b), a);
  }
  const auto b = c.blob(1);
  const auto operands = broadcast(c, a, b);
  const auto y = combine(c, op, operands.a, operands.b);
  return a.one_by_one && b.one_by_one ? c.output_one_by_one(y) : c.output(0, y);
}

// --- Eltwise

Kind eltwise_kind(std::int64_t type, bool is_pair) {
  if (type == 0) return Kind::mul;
  if (type == 2) return Kind::max;
  return is_pair ? Kind::add : Kind::sum;
}

void eltwise(Conversion& c) {
  const auto type = c.params().integer({.id = 0, .name = "op_type", .high = 2});
  auto coefficients = c.params().numbers(1);
  if (c.input_count() < 2) return c.fail("it has fewer than two inputs");
  if (type != 1) coefficients.clear();
  if (!coefficients.empty() && coefficients.size() != c.input_count())
    return c.fail(
        fmt::format("{} coefficients do not fit {} inputs", coefficients.size(), c.input_count()));

  const bool is_difference = coefficients == std::vector<double>{1, -1};
  std::vector<TensorId> operands;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    auto x = c.flat(i);
    if (!coefficients.empty() && coefficients[i] != 1 && !is_difference) {
      const auto factor =
          c.scalar(fmt::format("coefficient{}", i), static_cast<float>(coefficients[i]));
      x = c.add(Elementwise{.kind = Kind::mul}, {x, factor}, fmt::format("scaled{}", i));
    }
    operands.push_back(x);
  }
  if (is_difference) return c.output(0, c.add(Elementwise{.kind = Kind::sub}, operands));

  const auto kind = eltwise_kind(type, operands.size() == 2);
  if (kind != Kind::mul) return c.output(0, c.add(Elementwise{.kind = kind}, operands));
  auto y = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const auto role = i + 1 < operands.size() ? fmt::format("product{}", i) : std::string();
    y = c.add(Elementwise{.kind = kind}, {y, operands[i]}, role);
  }
  c.output(0, y);
}

// --- UnaryOp and its older forms

/// Indexed by op_type; absent ones have no operator in the graph.
constexpr std::array<std::optional<UnaryKind>, 20> kUnaryKinds = {
    UnaryKind::abs,        UnaryKind::neg,   UnaryKind::floor, UnaryKind::ceil,  UnaryKind::square,
    UnaryKind::sqrt,       UnaryKind::rsqrt, UnaryKind::exp,   UnaryKind::log,   UnaryKind::sin,
    UnaryKind::cos,        std::nullopt,     std::nullopt,     std::nullopt,     std::nullopt,
    UnaryKind::reciprocal, std::nullopt,     std::nullopt,     UnaryKind::round, std::nullopt};
constexpr std::int64_t kUnaryTanh = 16;

void unary_op(Conversion& c) {
  const auto type = c.params().integer({.id = 0, .name = "op_type"});
  const auto i = static_cast<std::size_t>(type);
  if (type != kUnaryTanh && (i >= kUnaryKinds.size() || !kUnaryKinds[i]))
    return c.unknown(fmt::format("UnaryOp {} is not supported", type));
  const auto blob = c.blob(0);
  const Operator op =
      type == kUnaryTanh ? Operator(Activate{kTanh}) : Operator(Unary{.kind = *kUnaryKinds[i]});
  output_like(c, c.add(op, {blob.tensor}), blob);
}

void absolute(Conversion& c) {
  const auto blob = c.blob(0);
  output_like(c, c.add(Unary{.kind = UnaryKind::abs}, {blob.tensor}), blob);
}

/// Applies a constant unless it changes nothing.
TensorId with_number(Conversion& c, TensorId x, Kind kind, float number, std::string_view role) {
  const float neutral = kind == Kind::add ? 0.0F : 1.0F;
  if (number == neutral) return x;
  return c.add(Elementwise{.kind = kind}, {x, c.scalar(fmt::format("{}_value", role), number)},
               role);
}

/// pow(shift + scale * x, power)
void power(Conversion& c) {
  const auto blob = c.blob(0);
  auto y = with_number(c, blob.tensor, Kind::mul, c.params().number(1, "scale", 1), "scale");
  y = with_number(c, y, Kind::add, c.params().number(2, "shift", 0), "shift");
  y = c.add(Elementwise{.kind = Kind::pow},
            {y, c.scalar("power", c.params().number(0, "power", 1))});
  output_like(c, y, blob);
}

void dropout(Conversion& c) {
  const auto blob = c.blob(0);
  const auto scale = c.params().number(0, "scale", 1);
  const auto y =
      scale == 1 ? c.add(Dropout{}, {blob.tensor})
                 : c.add(Elementwise{.kind = Kind::mul}, {blob.tensor, c.scalar("scale", scale)});
  output_like(c, y, blob);
}

// --- Reduction and Softmax

// Converters of old counted a batch dimension; the mark says that a file does not.
constexpr std::string_view kTooOld =
    "it was written by a converter whose axes ncnn no longer accepts; convert the model again";

/// Indexed by operation.
constexpr std::array<ReduceKind, 11> kReduceKinds = {
    ReduceKind::sum, ReduceKind::l1,      ReduceKind::sum_square, ReduceKind::mean,
    ReduceKind::max, ReduceKind::min,     ReduceKind::prod,       ReduceKind::l1,
    ReduceKind::l2,  ReduceKind::log_sum, ReduceKind::log_sum_exp};

/// The axes to reduce, never the batch; all of the blob if the layer says so.
Ints reduced_axes(Conversion& c, const Blob& blob) {
  Ints axes;
  const auto dims = static_cast<std::int64_t>(blob.dims);
  if (c.params().flag(1, "reduce_all", 1)) {
    for (std::int64_t axis = 1; axis <= dims; ++axis) axes.push_back(axis);
    return axes;
  }
  if (!c.params().flag(5, "fixbug0")) c.fail(std::string(kTooOld));
  for (const auto axis : c.params().integers(3, "axes")) {
    const auto index = axis < 0 ? axis + dims : axis;
    if (index < 0 || index >= dims) c.fail(fmt::format("it has no axis {}", axis));
    axes.push_back(index + 1);
  }
  return axes;
}

void reduction(Conversion& c) {
  auto& p = c.params();
  const auto kind =
      kReduceKinds[static_cast<std::size_t>(p.integer({.id = 0, .name = "operation", .high = 10}))];
  const auto blob = c.blob(0);
  const auto x = c.flat(blob);
  if (blob.dims == 0) return c.unknown("the dimensions of its input are not known");
  const auto axes = reduced_axes(c, blob);
  if (axes.empty()) return c.fail("it names no axes");
  const bool keep = p.flag(4, "keepdims");
  // ncnn's smallest blob has one dimension, so the last one is not dropped.
  const bool is_all = axes.size() == static_cast<std::size_t>(blob.dims);
  auto y = c.add(Reduce{.kind = kind, .axes = axes, .keep_dims = keep || is_all}, {x});
  if (is_all && !keep && blob.dims > 1) y = c.add(Flatten{.axis = 1}, {y}, "flatten");
  if (const auto factor = p.number(2, "coeff", 1); factor != 1) {
    y = c.add(Elementwise{.kind = ElementwiseKind::mul}, {y, c.scalar("coeff", factor)}, "scale");
  }
  c.output(0, y);
}

void softmax(Conversion& c) {
  const auto axis = c.params().integer({.id = 0, .name = "axis", .low = -4, .high = 3});
  if (axis != 0 && !c.params().flag(1, "fixbug0")) return c.fail(std::string(kTooOld));
  const auto blob = c.blob(0);
  output_like(c, c.add(Softmax{.axis = Conversion::axis(blob, axis)}, {blob.tensor}), blob);
}

constexpr std::array<LayerType, 8> kLayers = {{
    {"BinaryOp", binary_op},
    {"Eltwise", eltwise},
    {"UnaryOp", unary_op},
    {"AbsVal", absolute},
    {"Power", power},
    {"Dropout", dropout},
    {"Reduction", reduction},
    {"Softmax", softmax},
}};

/// The smaller blob with dimensions of one element, so that it broadcasts over the larger. ncnn
/// aligns it with the outermost dimensions if it fits there, else with the innermost.
TensorId expanded(Conversion& c, const Blob& small, const Blob& large, std::string_view role) {
  if (small.one_by_one && large.dims == 3) return small.tensor;
  const auto x = c.flat(small);
  const auto mine = c.extents(small);
  const auto theirs = c.extents(large);
  const bool fits_outermost = mine.empty() || theirs.size() < mine.size() ||
                              std::equal(
                                  mine.begin(), mine.end(), theirs.begin(),
                                  [](auto a, auto b) { return a == b || a == 1 || b == 1; });
  Ints axes;
  const int first = fits_outermost ? small.dims + 1 : 1;
  for (int i = 0; i < large.dims - small.dims; ++i) axes.push_back(first + i);
  return c.add(Unsqueeze{}, {x, c.ints(fmt::format("{}_axes", role), axes)}, role);
}

}  // namespace

Pair broadcast(Conversion& c, const Blob& a, const Blob& b) {
  if (a.one_by_one && b.one_by_one) return {a.tensor, b.tensor};
  if (a.dims == b.dims || a.dims == 0 || b.dims == 0) return {c.flat(a), c.flat(b)};
  if (a.dims < b.dims) return {expanded(c, a, b, "expanded"), b.tensor};
  return {a.tensor, expanded(c, b, a, "expanded")};
}

void output_like(Conversion& c, TensorId y, const Blob& a) {
  return a.one_by_one ? c.output_one_by_one(y) : c.output(0, y);
}

std::span<const LayerType> arithmetic_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
