#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fleetfit/graph/shape_inference.h"
#include "train/torch/operators.h"

/// Layers: activations, convolutions, products, normalization and pooling.
namespace fleetfit::train::operators {

using namespace graph;  // the operators, which this file is all about

// ---- Activations

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

namespace {

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
  const auto axes = counting(x.dim() - 2, std::int64_t{2});
  const auto y = op.kind == PoolKind::max ? at::amax(x, axes, true) : x.mean(axes, true);
  return {from_channels_first(y, op.layout)};
}

}  // namespace

std::span<const Runner> layer_runners() {
  static constexpr std::array kRunners{
      runner<graph::Activate, run>(),
      runner<graph::PRelu, run>(),
      runner<graph::Conv, run>(),
      runner<graph::ConvTranspose, run>(),
      runner<graph::Gemm, run>(),
      runner<graph::MatMul, run>(),
      runner<graph::MultiHeadAttention, run>(),
      runner<graph::BatchNorm, run>(),
      runner<graph::InstanceNorm, run>(),
      runner<graph::LayerNorm, run>(),
      runner<graph::Lrn, run>(),
      runner<graph::LpNormalization, run>(),
      runner<graph::Softmax, run>(),
      runner<graph::Pool, run>(),
      runner<graph::GlobalPool, run>(),
  };
  return kRunners;
}

}  // namespace fleetfit::train::operators
