#include "train/torch_operators.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/div.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "fleetfit/graph/resize.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::train {
namespace {

using namespace graph;  // the operators, which this file is all about

using Outputs = std::vector<at::Tensor>;
using Call = OperatorCall;

template <class... Args>
[[noreturn]] void misfit(fmt::format_string<Args...> text, Args&&... args) {
  throw std::runtime_error(fmt::format(text, std::forward<Args>(args)...));
}

// ---- Shapes and axes

Ints counting(std::int64_t count, std::int64_t first = 0) {
  Ints numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

Ints ints_of(const at::Tensor& numbers) {
  const auto flat = numbers.to(at::kCPU, at::kLong).contiguous();
  const auto* first = flat.data_ptr<std::int64_t>();
  return {first, first + flat.numel()};
}

at::Tensor tensor_of(const Ints& numbers) {
  auto tensor = at::empty({std::ssize(numbers)}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

std::int64_t positive_axis(std::int64_t axis, std::int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

Ints positive_axes(Ints axes, std::int64_t rank) {
  for (auto& axis : axes) axis = positive_axis(axis, rank);
  return axes;
}

at::Tensor to_channels_first(const at::Tensor& x, Layout layout) {
  return layout == Layout::nchw ? x : x.movedim(-1, 1);
}

at::Tensor from_channels_first(const at::Tensor& x, Layout layout) {
  return layout == Layout::nchw ? x : x.movedim(1, -1);
}

Ints spatial_of(const at::Tensor& x) { return x.sizes().slice(2).vec(); }

/// Adds to the spatial dimensions; torch wants the last one first.
at::Tensor pad_spatial(const at::Tensor& x, const Ints& begin, const Ints& end, double value) {
  Ints pads;
  for (std::size_t i = begin.size(); i-- > 0;) {
    pads.push_back(begin[i]);
    pads.push_back(end[i]);
  }
  return at::constant_pad_nd(x, pads, value);
}

/// All on the device of the one that is not on the CPU, if there is one.
std::vector<at::Tensor> together(std::vector<at::Tensor> operands) {
  const auto far = std::ranges::find_if(operands, [](const at::Tensor& x) { return !x.is_cpu(); });
  if (far == operands.end()) return operands;
  const auto device = far->device();
  for (auto& operand : operands) operand = operand.to(device);
  return operands;
}

// ---- Activations

enum class Memory : std::uint8_t { keep, overwrite };

at::Tensor activated(at::Tensor x, const Activation& activation, Memory memory) {
  const double alpha = activation.alpha;
  const double beta = activation.beta;
  switch (activation.kind) {
    case ActivationKind::none:
      return x;
    case ActivationKind::relu:
      return memory == Memory::overwrite ? at::relu_(x) : at::relu(x);
    case ActivationKind::clip:
      return at::clamp(x, alpha, beta);
    case ActivationKind::leaky_relu:
      return at::leaky_relu(x, alpha);
    case ActivationKind::elu:
      return at::elu(x, alpha);
    case ActivationKind::sigmoid:
      return at::sigmoid(x);
    case ActivationKind::hard_sigmoid:
      return at::clamp(x.mul(alpha).add(beta), 0, 1);
    case ActivationKind::tanh:
      return at::tanh(x);
    case ActivationKind::hard_swish:
      return at::hardswish(x);
    case ActivationKind::silu:
      return at::silu(x);
    case ActivationKind::gelu:
      return at::gelu(x, "none");
    case ActivationKind::gelu_tanh:
      return at::gelu(x, "tanh");
    case ActivationKind::softplus:
      return at::softplus(x);
    case ActivationKind::softsign:
      return x.div(at::abs(x).add(1));
    case ActivationKind::selu:
      return at::elu(x, alpha, beta);
    case ActivationKind::mish:
      return at::mish(x);
  }
  return x;
}

Outputs run(const Activate& op, const Call& call) {
  return {
      activated(call.in(0), op.function, call.may_overwrite ? Memory::overwrite : Memory::keep)};
}

Outputs run(const PRelu&, const Call& call) {
  const auto& x = call.in(0);
  return {at::where(x.lt(0), x.mul(call.in(1)), x)};
}

// ---- Convolutions and products

Outputs run(const Conv& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto weights = to_channels_first(call.in(1), op.layout);
  const auto padding = resolve_padding(op.window, spatial_of(x));
  const bool even = padding.begin == padding.end;
  const Ints none(padding.begin.size(), 0);
  const auto y = at::convolution(even ? x : pad_spatial(x, padding.begin, padding.end, 0), weights,
                                 call.optional(2), op.window.strides, even ? padding.begin : none,
                                 op.window.dilations, false, none, op.groups);
  return {from_channels_first(y, op.layout)};
}

/// Weights output x kernel… x input/groups as torch's input x output/groups x kernel….
at::Tensor transposed_weights(const at::Tensor& weights, const ConvTranspose& op) {
  if (op.layout == Layout::nchw) return weights;
  const auto split = weights.movedim(-1, 1).unflatten(0, {op.groups, weights.size(0) / op.groups});
  return split.transpose(1, 2).flatten(0, 1);
}

/// What is cut off the full result of a transposed convolution, at the front and in all.
struct Crop {
  Ints begin;
  Ints kept;
};

Crop crop_of(const ConvTranspose& op, const Ints& in, const Ints& full) {
  const auto& w = op.window;
  Crop crop;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool same = w.auto_pad == AutoPad::same_upper || w.auto_pad == AutoPad::same_lower;
    auto kept = full[i];
    if (!op.output_shape.empty()) {
      kept = op.output_shape[i];
    } else if (same) {
      kept = in[i] * w.strides[i];
    } else if (w.auto_pad == AutoPad::explicit_pads) {
      kept = full[i] - w.pads_begin[i] - w.pads_end[i];
    }
    const auto total = std::max<std::int64_t>(0, full[i] - kept);
    const bool given = op.output_shape.empty() && w.auto_pad == AutoPad::explicit_pads;
    const auto half = w.auto_pad == AutoPad::same_upper ? total / 2 : total - total / 2;
    crop.begin.push_back(given ? w.pads_begin[i] : half);
    crop.kept.push_back(kept);
  }
  return crop;
}

Outputs run(const ConvTranspose& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const Ints none(op.window.kernel.size(), 0);
  auto y = at::convolution(x, transposed_weights(call.in(1), op), call.optional(2),
                           op.window.strides, none, op.window.dilations, true,
                           op.output_padding.empty() ? none : op.output_padding, op.groups);
  const auto crop = crop_of(op, spatial_of(x), spatial_of(y));
  for (std::size_t i = 0; i < crop.begin.size(); ++i)
    y = y.narrow(static_cast<std::int64_t>(i) + 2, crop.begin[i], crop.kept[i]);
  return {from_channels_first(y, op.layout)};
}

Outputs run(const Gemm& op, const Call& call) {
  const auto& b = call.in(1);
  const auto columns = op.trans_b ? b : b.t();  // output x input, as torch's dense layers
  const auto a = op.trans_a ? call.in(0).t() : call.in(0);
  const auto rows = op.keep_leading ? a : a.reshape({-1, columns.size(1)});
  const auto c = call.optional(2);
  const bool plain = op.alpha == 1 && (!c.defined() || (op.beta == 1 && c.dim() == 1));
  if (plain) return {at::linear(rows, columns, c)};
  const auto product = at::linear(rows, columns).mul(op.alpha);
  return {c.defined() ? product.add(c, op.beta) : product};
}

Outputs run(const MatMul& op, const Call& call) {
  const auto a = op.trans_a ? call.in(0).transpose(-1, -2) : call.in(0);
  const auto b = op.trans_b ? call.in(1).transpose(-1, -2) : call.in(1);
  return {at::matmul(a, b)};
}

Outputs run(const MultiHeadAttention& op, const Call& call) {
  const auto by_head = [&](std::size_t i) {
    const auto y = at::linear(call.in(i), call.in(3 + 2 * i), call.in(4 + 2 * i));
    return y.unflatten(-1, {op.heads, y.size(-1) / op.heads}).transpose(-2, -3);
  };
  const auto q = by_head(0);
  const auto scores = at::matmul(q, by_head(1).transpose(-1, -2));
  const auto weights =
      at::softmax(scores.div(std::sqrt(static_cast<double>(q.size(-1)))), /*dim=*/-1);
  const auto mixed = at::matmul(weights, by_head(2)).transpose(-2, -3).flatten(-2);
  return {at::linear(mixed, call.in(9), call.in(10))};
}

// ---- Normalization

Outputs run(const BatchNorm& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  // One value has no variance.
  const bool batch = call.norm.batch_statistics && x.numel() > x.size(1);
  // Several threads may run the network at once as long as none of them changes it.
  const bool keeps = batch && call.norm.momentum == 0;
  const auto mean = keeps ? at::Tensor() : call.in(3);
  const auto variance = keeps ? at::Tensor() : call.in(4);
  const auto y = at::batch_norm(x, call.in(1), call.in(2), mean, variance, batch,
                                call.norm.momentum, op.epsilon, /*cudnn_enabled=*/true);
  return {from_channels_first(y, op.layout)};
}

Outputs run(const InstanceNorm& op, const Call& call) {
  return {at::instance_norm(call.in(0), call.in(1), call.in(2), {}, {}, /*use_input_stats=*/true,
                            /*momentum=*/0.1, op.epsilon, /*cudnn_enabled=*/true)};
}

Outputs run(const LayerNorm& op, const Call& call) {
  if (call.node.outputs.size() > 1) misfit("further outputs of a layer norm are not known here");
  const auto& x = call.in(0);
  const auto shape = x.sizes().slice(positive_axis(op.axis, x.dim())).vec();
  const auto shift = call.optional(2);
  return {at::layer_norm(x, shape, call.in(1).expand(shape),
                         shift.defined() ? shift.expand(shape) : shift, op.epsilon)};
}

Outputs run(const Lrn& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto squares = x.square().reshape({x.size(0), 1, x.size(1), -1});
  const auto below = (op.size - 1) / 2;
  const auto padded = at::constant_pad_nd(squares, {0, 0, below, op.size - 1 - below}, 0);
  const auto mean = at::avg_pool2d(padded, {op.size, 1}, {1, 1}).reshape(x.sizes());
  return {from_channels_first(x.div(mean.mul(op.alpha).add(op.bias).pow(op.beta)), op.layout)};
}

Outputs run(const LpNormalization& op, const Call& call) {
  constexpr double kTiny = 1e-24;  // what is zero stays zero
  const auto& x = call.in(0);
  if (op.p == 1) return {x.div(x.abs().sum({op.axis}, true).clamp_min(kTiny))};
  return {x.div(x.square().sum({op.axis}, true).clamp_min(kTiny).sqrt())};
}

Outputs run(const Softmax& op, const Call& call) {
  const auto& x = call.in(0);
  const auto flat = op.to_end ? x.flatten(positive_axis(op.axis, x.dim())) : x;
  const auto axis = op.to_end ? -1 : op.axis;
  const auto y = op.log ? at::log_softmax(flat, axis) : at::softmax(flat, axis);
  return {y.reshape(x.sizes())};
}

// ---- Pooling

at::Tensor max_pool(const at::Tensor& x, const Window& w, const Ints& pads) {
  switch (w.kernel.size()) {
    case 1:
      return at::max_pool1d(x, w.kernel, w.strides, pads, w.dilations);
    case 2:
      return at::max_pool2d(x, w.kernel, w.strides, pads, w.dilations);
    case 3:
      return at::max_pool3d(x, w.kernel, w.strides, pads, w.dilations);
    default:
      misfit("{} spatial dimensions", w.kernel.size());
  }
}

at::Tensor average_pool(const at::Tensor& x, const Window& w, const Ints& pads,
                        bool count_padding) {
  switch (w.kernel.size()) {
    case 1:
      return at::avg_pool1d(x, w.kernel, w.strides, pads, false, count_padding);
    case 2:
      return at::avg_pool2d(x, w.kernel, w.strides, pads, false, count_padding);
    case 3:
      return at::avg_pool3d(x, w.kernel, w.strides, pads, false, count_padding);
    default:
      misfit("{} spatial dimensions", w.kernel.size());
  }
}

/// What has to be added behind the padded image so that the windows of the graph's output fit.
Ints room_behind(const Pool& op, const Call& call, const at::Tensor& x, const Padding& padding) {
  const auto& shape = call.graph.tensor(call.node.outputs[0]).shape;
  if (!shape) misfit("the extents of the result are not known");
  const auto out = spatial_extents(*shape, op.layout);
  Ints room;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto needed = (out[i] - 1) * op.window.strides[i] +
                        (op.window.kernel[i] - 1) * op.window.dilations[i] + 1;
    const auto there = x.size(static_cast<std::int64_t>(i) + 2) + padding.begin[i] + padding.end[i];
    room.push_back(std::max<std::int64_t>(0, needed - there));
  }
  return room;
}

/// torch takes equal padding on both sides, of up to half a kernel.
bool torch_can_pad(const Pool& op, const Padding& padding, const Ints& room) {
  for (std::size_t i = 0; i < room.size(); ++i) {
    if (room[i] != 0 || padding.begin[i] != padding.end[i] ||
        2 * padding.begin[i] > op.window.kernel[i]) {
      return false;
    }
  }
  return true;
}

at::Tensor average_pool_unevenly(const Pool& op, const at::Tensor& x, const Padding& padding,
                                 const Ints& room) {
  const Ints none(room.size(), 0);
  const auto sums =
      average_pool(pad_spatial(pad_spatial(x, padding.begin, padding.end, 0), none, room, 0),
                   op.window, none, true);
  auto extents = x.sizes().vec();
  extents[0] = extents[1] = 1;
  const auto inside = pad_spatial(at::ones(extents, x.options()), padding.begin, padding.end,
                                  op.count_include_pad ? 1 : 0);
  return sums.div(average_pool(pad_spatial(inside, none, room, 0), op.window, none, true));
}

Outputs run(const Pool& op, const Call& call) {
  if (call.node.outputs.size() > 1) misfit("the places of the largest elements are not known here");
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto padding = resolve_padding(op.window, spatial_of(x));
  const auto room = room_behind(op, call, x, padding);
  const bool even = torch_can_pad(op, padding, room);
  const Ints none(room.size(), 0);
  at::Tensor y;
  if (op.kind == PoolKind::max) {
    constexpr double kLeast = -std::numeric_limits<double>::infinity();
    const auto padded =
        even ? x
             : pad_spatial(pad_spatial(x, padding.begin, padding.end, kLeast), none, room, kLeast);
    y = max_pool(padded, op.window, even ? padding.begin : none);
  } else {
    if (std::ranges::any_of(op.window.dilations, [](auto step) { return step != 1; }))
      misfit("averages with dilations are not known here");
    y = even ? average_pool(x, op.window, padding.begin, op.count_include_pad)
             : average_pool_unevenly(op, x, padding, room);
  }
  return {from_channels_first(y, op.layout)};
}

Outputs run(const GlobalPool& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto axes = counting(x.dim() - 2, 2);
  const auto y = op.kind == PoolKind::max ? at::amax(x, axes, true) : x.mean(axes, true);
  return {from_channels_first(y, op.layout)};
}

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

// ---- Moving data

/// A constant that stands for each sample of the graph's batch, repeated for the batch at hand.
at::Tensor for_batch(const Call& call, std::size_t i) {
  const auto& x = call.in(i);
  const bool repeats = call.is_static_input(i) && x.dim() > 1 && x.size(0) == 1 &&
                       call.graph_batch == 1 && call.batch != 1;
  if (!repeats) return x;
  auto shape = x.sizes().vec();
  shape[0] = call.batch;
  return x.expand(shape);
}

Outputs run(const Concat& op, const Call& call) {
  const bool along_batch = positive_axis(op.axis, call.in(0).dim()) == 0;
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    parts.push_back(along_batch ? call.in(i) : for_batch(call, i));
  return {at::cat(together(std::move(parts)), op.axis)};
}

Outputs run(const graph::Split& op, const Call& call) {
  const auto& x = call.in(0);
  const auto count = std::ssize(call.node.outputs);
  const Ints sizes = call.has(1) ? ints_of(call.in(1))
                                 : Ints(static_cast<std::size_t>(count), x.size(op.axis) / count);
  return x.split_with_sizes(sizes, op.axis);
}

/// Every `step`-th index from the back.
at::Tensor sliced_backwards(const at::Tensor& x, std::int64_t axis, std::int64_t start,
                            std::int64_t end, std::int64_t step) {
  const auto extent = x.size(axis);
  start = std::clamp<std::int64_t>(start < 0 ? start + extent : start, -1, extent - 1);
  end = std::clamp<std::int64_t>(end < 0 ? end + extent : end, -1, extent - 1);
  Ints indices;
  for (auto i = start; i > end; i += step) indices.push_back(i);
  return x.index_select(axis, tensor_of(indices).to(x.device()));
}

Outputs run(const graph::Slice& op, const Call& call) {
  auto x = call.in(0);
  const auto starts = ints_of(call.in(1));
  const auto ends = ints_of(call.in(2));
  const auto axes = call.has(3) ? ints_of(call.in(3)) : counting(std::ssize(starts));
  const auto steps = call.has(4) ? ints_of(call.in(4)) : Ints(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    x = steps[i] > 0 ? x.slice(axes[i], starts[i], ends[i], steps[i])
                     : sliced_backwards(x, axes[i], starts[i], ends[i], steps[i]);
  }
  auto squeezed = positive_axes(op.squeezed, x.dim());
  std::ranges::sort(squeezed, std::greater<>());
  for (const auto axis : squeezed) x = x.squeeze(axis);
  return {x};
}

/// Where each element of a padded axis comes from.
Ints mirrored_indices(PadMode mode, std::int64_t extent, std::int64_t begin, std::int64_t end) {
  Ints indices;
  for (auto i = -begin; i < extent + end; ++i) {
    auto from = std::clamp<std::int64_t>(i, 0, extent - 1);
    if (mode == PadMode::reflect && extent > 1) {
      const auto period = 2 * (extent - 1);
      from = ((i % period) + period) % period;
      if (from >= extent) from = period - from;
    }
    indices.push_back(from);
  }
  return indices;
}

Outputs run(const Pad& op, const Call& call) {
  auto x = call.in(0);
  const auto pads = ints_of(call.in(1));
  const auto rank = x.dim();
  if (op.mode == PadMode::constant) {
    Ints last_first;
    for (auto axis = rank; axis-- > 0;) {
      last_first.push_back(pads[static_cast<std::size_t>(axis)]);
      last_first.push_back(pads[static_cast<std::size_t>(axis + rank)]);
    }
    const double value = call.has(2) ? call.in(2).item<double>() : 0;
    return {at::constant_pad_nd(x, last_first, value)};
  }
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const auto begin = pads[static_cast<std::size_t>(axis)];
    const auto end = pads[static_cast<std::size_t>(axis + rank)];
    if (begin == 0 && end == 0) continue;
    const auto indices = mirrored_indices(op.mode, x.size(axis), begin, end);
    x = x.index_select(axis, tensor_of(indices).to(x.device()));
  }
  return {x};
}

/// Weighted sums along one axis, as a product with a matrix.
at::Tensor resized_axis(const Resize& op, const at::Tensor& x, std::int64_t axis,
                        const ResizedAxis& extents) {
  Ints nearest;
  auto weights = at::full({extents.out, extents.in}, 0.0, at::kFloat);
  auto* const weight = weights.data_ptr<float>();
  for (std::int64_t i = 0; i < extents.out; ++i) {
    const auto taps = resize_taps(op, extents, i);
    nearest.push_back(taps.index[0]);
    for (std::size_t t = 0; t < static_cast<std::size_t>(taps.count); ++t)
      weight[i * extents.in + taps.index[t]] += static_cast<float>(taps.weight[t]);
  }
  if (op.mode == ResizeMode::nearest)
    return x.index_select(axis, tensor_of(nearest).to(x.device()));
  return at::linear(x.movedim(axis, -1), weights.to(x.device())).movedim(-1, axis);
}

Outputs run(const Resize& op, const Call& call) {
  auto x = call.in(0);
  const bool by_sizes = call.has(3) && call.in(3).numel() > 0;
  const auto given = (by_sizes ? call.in(3) : call.in(2)).to(at::kCPU, at::kDouble).contiguous();
  const auto* const numbers = given.data_ptr<double>();
  // The batch is never resized.
  for (std::int64_t axis = 1; axis < x.dim(); ++axis) {
    const auto in = x.size(axis);
    const auto out = static_cast<std::int64_t>(
        by_sizes ? numbers[axis] : std::floor(static_cast<double>(in) * numbers[axis]));
    const double scale =
        by_sizes ? static_cast<double>(out) / static_cast<double>(in) : numbers[axis];
    const ResizedAxis extents{.in = in, .out = out, .scale = scale};
    if (extents.changes()) x = resized_axis(op, x, axis, extents);
  }
  return {x};
}

Outputs run(const Transpose& op, const Call& call) {
  const auto& x = call.in(0);
  Ints perm = op.perm;
  if (perm.empty()) {
    perm = counting(x.dim());
    std::ranges::reverse(perm);
  }
  return {x.permute(perm)};
}

/// A shape that is written into the graph holds for its own batch only.
void adjust_batch(Ints& shape, const Call& call, std::int64_t numel) {
  if (shape.empty() || call.batch == call.graph_batch || !call.is_static_input(1)) return;
  const bool open = std::ranges::find(shape, -1) != shape.end();
  if (open) {
    if (shape[0] == call.graph_batch) shape[0] = call.batch;
    return;
  }
  const auto stated =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  if (stated == numel || stated * call.batch != numel * call.graph_batch) return;
  shape[0] = shape[0] * call.batch / call.graph_batch;
}

Outputs run(const Reshape& op, const Call& call) {
  const auto& x = call.in(0);
  auto shape = ints_of(call.in(1));
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 0 && !op.allow_zero) shape[i] = x.size(static_cast<std::int64_t>(i));
  if (!call.is_static_input(0)) adjust_batch(shape, call, x.numel());
  return {x.reshape(shape)};
}

Outputs run(const Flatten& op, const Call& call) {
  const auto& x = call.in(0);
  const auto axis = positive_axis(op.axis, x.dim());
  const auto rows = std::accumulate(x.sizes().begin(), x.sizes().begin() + axis, std::int64_t{1},
                                    std::multiplies<>());
  return {x.reshape({rows, rows == 0 ? 0 : x.numel() / rows})};
}

/// Those of the graph's own extents that are 1, where the operator does not say which.
Ints squeezed_axes(const Call& call) {
  if (call.has(1)) return positive_axes(ints_of(call.in(1)), call.in(0).dim());
  const auto& shape = call.graph.tensor(call.node.inputs[0]).shape;
  if (!shape) misfit("the extents of the operand are not known");
  Ints axes;
  for (std::size_t i = 0; i < shape->size(); ++i)
    if ((*shape)[i] == 1) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

Outputs run(const Squeeze&, const Call& call) {
  auto x = call.in(0);
  auto axes = squeezed_axes(call);
  std::ranges::sort(axes, std::greater<>());
  for (const auto axis : axes) x = x.squeeze(axis);
  return {x};
}

Outputs run(const Unsqueeze&, const Call& call) {
  auto x = call.in(0);
  auto axes = ints_of(call.in(1));
  axes = positive_axes(axes, x.dim() + std::ssize(axes));
  std::ranges::sort(axes);
  for (const auto axis : axes) x = x.unsqueeze(axis);
  return {x};
}

Outputs run(const Expand&, const Call& call) {
  const auto& x = call.in(0);
  auto shape = ints_of(call.in(1));
  const bool stated = call.is_static_input(1) && std::ssize(shape) > 1;
  if (stated && shape[0] == call.graph_batch) shape[0] = call.batch;
  while (std::ssize(shape) < x.dim()) shape.insert(shape.begin(), 1);
  const auto missing = std::ssize(shape) - x.dim();
  for (std::int64_t i = 0; i < x.dim(); ++i) {
    auto& extent = shape[static_cast<std::size_t>(i + missing)];
    if (extent == 1) extent = x.size(i);
  }
  return {x.expand(shape)};
}

Outputs run(const Tile&, const Call& call) { return {call.in(0).repeat(ints_of(call.in(1)))}; }

Outputs run(const Gather& op, const Call& call) {
  const auto& x = call.in(0);
  const auto axis = positive_axis(op.axis, x.dim());
  const auto wanted = call.in(1).to(x.device(), at::kLong);
  const auto flat = wanted.flatten();
  const auto indices = at::where(flat.lt(0), flat.add(x.size(axis)), flat);
  auto shape = x.sizes().vec();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, wanted.sizes().begin(), wanted.sizes().end());
  return {x.index_select(axis, indices).reshape(shape)};
}

Outputs run(const Stack& op, const Call& call) { return {at::stack(call.inputs, op.axis)}; }

Outputs run(const Unstack& op, const Call& call) { return call.in(0).unbind(op.axis); }

at::Tensor regrouped(const at::Tensor& x, const Ints& split, const Ints& perm, const Ints& result) {
  return x.reshape(split).permute(perm).reshape(result);
}

Outputs run(const DepthToSpace& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto b = op.block;
  const auto [n, c, h, w] = std::tuple(x.size(0), x.size(1) / (b * b), x.size(2), x.size(3));
  const Ints result{n, c, h * b, w * b};
  const auto y = op.column_row_depth ? regrouped(x, {n, c, b, b, h, w}, {0, 1, 4, 2, 5, 3}, result)
                                     : regrouped(x, {n, b, b, c, h, w}, {0, 3, 4, 1, 5, 2}, result);
  return {from_channels_first(y, op.layout)};
}

Outputs run(const SpaceToDepth& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto b = op.block;
  const auto [n, c, h, w] = std::tuple(x.size(0), x.size(1), x.size(2) / b, x.size(3) / b);
  const auto y = regrouped(x, {n, c, h, b, w, b}, {0, 3, 5, 1, 2, 4}, {n, c * b * b, h, w});
  return {from_channels_first(y, op.layout)};
}

Outputs run(const ChannelShuffle& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto y = x.unflatten(1, {op.groups, x.size(1) / op.groups}).transpose(1, 2).flatten(1, 2);
  return {from_channels_first(y, op.layout)};
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

// ---- Constants and shapes

Outputs run(const ConstantOfShape& op, const Call& call) {
  const auto type = scalar_type_of(op.dtype);
  if (!type) misfit("constants of {} are not known here", to_string(op.dtype));
  return {at::full(ints_of(call.in(0)), op.value, *type)};
}

Outputs run(const ShapeOf& op, const Call& call) {
  const auto extents = call.in(0).sizes();
  const auto rank = std::ssize(extents);
  const auto bound = [&](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, rank); };
  const auto begin = bound(positive_axis(op.start, rank));
  const auto end = op.end ? bound(positive_axis(*op.end, rank)) : rank;
  const auto count = std::max<std::int64_t>(0, end - begin);
  return {tensor_of(
      extents.slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)).vec())};
}

Outputs run(const graph::Range&, const Call& call) {
  return {
      at::arange(call.in(0).item(), call.in(1).item(), call.in(2).item(), call.in(0).options())};
}

Outputs run(const Identity&, const Call& call) { return {call.in(0)}; }

Outputs run(const Dropout&, const Call& call) { return {call.in(0)}; }

template <class Op>
constexpr bool kRuns = requires(const Op& op, const Call& call) { run(op, call); };

}  // namespace

std::vector<at::Tensor> run_operator(const OperatorCall& call) {
  auto outputs = std::visit(
      [&]<class Op>(const Op& op) -> Outputs {
        if constexpr (kRuns<Op>) {
          return run(op, call);
        } else {
          misfit("nothing here trains it");
        }
      },
      call.node.op);
  if (call.node.activation) {
    const auto memory = forgets_results(call.node.op) ? Memory::overwrite : Memory::keep;
    outputs[0] = activated(outputs[0], call.node.activation, memory);
  }
  return outputs;
}

bool forgets_results(const graph::Operator& op) {
  if (const auto* sum = std::get_if<Elementwise>(&op)) return sum->kind == ElementwiseKind::add;
  return std::holds_alternative<Conv>(op) || std::holds_alternative<BatchNorm>(op);
}

std::optional<std::string> why_not_trainable(const graph::Operator& op) {
  if (const auto* unknown = std::get_if<Unknown>(&op)) return unknown->reason;
  if (std::holds_alternative<Constant>(op)) return std::nullopt;
  const bool runs = std::visit([]<class Op>(const Op&) { return kRuns<Op>; }, op);
  if (runs) return std::nullopt;
  return "no gradient of it is known here";
}

std::optional<at::ScalarType> scalar_type_of(graph::DType type) {
  switch (type) {
    case DType::f32:
    case DType::f64:
      return at::kFloat;
    case DType::i32:
    case DType::i64:
      return at::kLong;
    case DType::boolean:
      return at::kBool;
    default:
      return std::nullopt;
  }
}

}  // namespace fleetfit::train
