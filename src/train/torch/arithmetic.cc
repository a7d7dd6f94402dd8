#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/div.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>

#include "train/torch/operators.h"

/// Arithmetic on elements and over axes.
namespace fleetfit::train::operators {

using namespace graph;  // the operators, which this file is all about

namespace {

// ---- Element-wise

Outputs run(const Unary& op, const Call& call) {
  const auto& x = call.in(0);
  switch (op.kind) {
    case UnaryKind::abs:
      return {at::abs(x)};
    case UnaryKind::neg:
      return {x.neg()};
    case UnaryKind::exp:
      return {at::exp(x)};
    case UnaryKind::log:
      return {at::log(x)};
    case UnaryKind::sqrt:
      return {at::sqrt(x)};
    case UnaryKind::reciprocal:
      return {at::reciprocal(x)};
    case UnaryKind::floor:
      return {at::floor(x)};
    case UnaryKind::ceil:
      return {at::ceil(x)};
    case UnaryKind::round:
      return {at::round(x)};
    case UnaryKind::erf:
      return {at::erf(x)};
    case UnaryKind::sin:
      return {at::sin(x)};
    case UnaryKind::cos:
      return {at::cos(x)};
    case UnaryKind::sign:
      return {at::sign(x)};
    case UnaryKind::logical_not:
      return {at::logical_not(x)};
    case UnaryKind::square:
      return {x.square()};
    case UnaryKind::rsqrt:
      return {at::rsqrt(x)};
  }
  return {x};
}

at::Tensor combined(ElementwiseKind kind, const at::Tensor& a, const at::Tensor& b) {
  const bool whole = !a.is_floating_point() && !b.is_floating_point();
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sum:
    case ElementwiseKind::mean:
      return a.add(b);
    case ElementwiseKind::sub:
      return a.sub(b);
    case ElementwiseKind::mul:
      return a.mul(b);
    case ElementwiseKind::div:
      return whole ? at::div(a, b, "trunc") : a.div(b);
    case ElementwiseKind::pow:
      return at::pow(a, b);
    case ElementwiseKind::mod:
      return whole ? at::remainder(a, b) : at::fmod(a, b);
    case ElementwiseKind::min:
      return at::minimum(a, b);
    case ElementwiseKind::max:
      return at::maximum(a, b);
    case ElementwiseKind::equal:
      return a.eq(b);
    case ElementwiseKind::greater:
      return a.gt(b);
    case ElementwiseKind::less:
      return a.lt(b);
    case ElementwiseKind::greater_or_equal:
      return a.ge(b);
    case ElementwiseKind::less_or_equal:
      return a.le(b);
    case ElementwiseKind::logical_and:
      return at::logical_and(a, b);
    case ElementwiseKind::logical_or:
      return at::logical_or(a, b);
    case ElementwiseKind::logical_xor:
      return at::logical_xor(a, b);
    case ElementwiseKind::squared_difference:
      return a.sub(b).square();
  }
  return a;
}

Outputs run(const Elementwise& op, const Call& call) {
  const auto operands = together(call.inputs);
  auto result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) result = combined(op.kind, result, operands[i]);
  if (op.kind == ElementwiseKind::mean)
    result = result.div(static_cast<double>(call.inputs.size()));
  return {result};
}

Outputs run(const Where&, const Call& call) {
  const auto operands = together(call.inputs);
  return {at::where(operands[0].to(at::kBool), operands[1], operands[2])};
}

Outputs run(const Cast& op, const Call& call) {
  const auto type = scalar_type_of(op.to);
  if (!type) misfit("a cast to {} is not known here", to_string(op.to));
  return {call.in(0).to(*type)};
}

// ---- Reductions

at::Tensor product_over(at::Tensor x, Ints axes, bool keep) {
  std::ranges::sort(axes, std::greater<>());
  for (const auto axis : axes) x = at::prod(x, axis, keep);
  return x;
}

Outputs run(const Reduce& op, const Call& call) {
  const auto& x = call.in(0);
  const auto axes = op.axes.empty() ? counting(x.dim()) : positive_axes(op.axes, x.dim());
  const bool keep = op.keep_dims;
  switch (op.kind) {
    case ReduceKind::mean:
      return {x.mean(axes, keep)};
    case ReduceKind::sum:
      return {x.sum(axes, keep)};
    case ReduceKind::max:
      return {at::amax(x, axes, keep)};
    case ReduceKind::min:
      return {at::amin(x, axes, keep)};
    case ReduceKind::prod:
      return {product_over(x, axes, keep)};
    case ReduceKind::l1:
      return {x.abs().sum(axes, keep)};
    case ReduceKind::l2:
      return {x.square().sum(axes, keep).sqrt()};
    case ReduceKind::sum_square:
      return {x.square().sum(axes, keep)};
    case ReduceKind::log_sum:
      return {x.sum(axes, keep).log()};
    case ReduceKind::log_sum_exp:
      return {at::logsumexp(x, axes, keep)};
  }
  return {x};
}

}  // namespace

std::span<const Runner> arithmetic_runners() {
  static constexpr std::array kRunners{
      runner<graph::Unary, run>(), runner<graph::Elementwise, run>(), runner<graph::Where, run>(),
      runner<graph::Cast, run>(),  runner<graph::Reduce, run>(),
  };
  return kRunners;
}

}  // namespace fleetfit::train::operators
