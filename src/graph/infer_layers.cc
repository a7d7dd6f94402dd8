// Shapes of convolutions, pooling, matrix products and normalizations.

#include <algorithm>

#include "fleetfit/graph/shape_inference.h"
#include "graph/operands.h"

namespace fleetfit::graph {
namespace {

// Far beyond any real window, and small enough that products of two fit into 64 bits.
constexpr std::int64_t kMostWindow = std::int64_t{1} << 30;

bool within(const Ints& values, std::int64_t least) {
  return std::all_of(values.begin(), values.end(),
                     [least](std::int64_t v) { return v >= least && v <= kMostWindow; });
}

Status check_window(const Window& window, std::size_t spatial) {
  for (const auto* list :
       {&window.kernel, &window.strides, &window.dilations, &window.pads_begin, &window.pads_end}) {
    if (list->size() != spatial)
      return misfit("a window of {} dimensions on an image of {}", list->size(), spatial);
  }
  if (!within(window.kernel, 1) || !within(window.strides, 1) || !within(window.dilations, 1)) {
    return misfit("kernel, strides and dilations must be positive and sane");
  }
  if (!within(window.pads_begin, -kMostWindow) || !within(window.pads_end, -kMostWindow)) {
    return misfit("pads are absurdly large");
  }
  return {};
}

std::int64_t reach(const Window& window, std::size_t i) {
  return window.dilations[i] * (window.kernel[i] - 1) + 1;
}

/// How many windows fit along each spatial dimension.
Result<Ints> windows_that_fit(const Window& window, const Ints& extents) {
  const auto padding = resolve_padding(window, extents);
  Ints result;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto stride = window.strides[i];
    const auto room = extents[i] + padding.begin[i] + padding.end[i] - reach(window, i);
    if (room < 0) {
      return misfit("a window of {} does not fit into {} elements padded by {} and {}",
                    reach(window, i), extents[i], padding.begin[i], padding.end[i]);
    }
    auto count = room / stride + 1;
    if (window.ceil_mode && room % stride != 0) {
      // A window that would start in the padding behind the image is left out.
      if (count * stride < extents[i] + padding.begin[i]) ++count;
    }
    result.push_back(count);
  }
  return result;
}

Shape image_shape(std::int64_t batch, std::int64_t channels, const Ints& extents, Layout layout) {
  Shape shape{batch};
  if (layout == Layout::nchw) shape.push_back(channels);
  shape.insert(shape.end(), extents.begin(), extents.end());
  if (layout == Layout::nhwc) shape.push_back(channels);
  return shape;
}

Status check_image(const Shape& shape) {
  if (shape.size() < 3)
    return misfit("{} is no image: it needs a batch, channels and at least one spatial dimension",
                  to_string(shape));
  return {};
}

Status check_bias(const Operands& in, std::size_t position, std::int64_t channels) {
  const auto* bias = in.shape(position);
  if (bias != nullptr && elements(*bias) != channels) {
    return misfit("{} values of bias for {} channels", elements(*bias), channels);
  }
  return {};
}

/// Spatial extents of a kernel in the weights.
Ints kernel_extents(const Shape& weights, Layout layout) {
  const auto first = layout == Layout::nchw ? 2 : 1;
  return {weights.begin() + first,
          weights.begin() + first + static_cast<std::ptrdiff_t>(weights.size() - 2)};
}

struct ConvChannels {
  std::int64_t in = 0;
  std::int64_t out = 0;
};

Status check_conv(const Window& window, std::int64_t groups, Layout layout, const Shape& x,
                  const Shape& weights) {
  FLEETFIT_TRY(check_image(x));
  if (weights.size() != x.size()) {
    return misfit("weights {} do not fit an input of {}", to_string(weights), to_string(x));
  }
  FLEETFIT_TRY(check_window(window, x.size() - 2));
  if (kernel_extents(weights, layout) != window.kernel) {
    return misfit("weights {} do not have the kernel {}", to_string(weights),
                  to_string(window.kernel));
  }
  if (groups < 1 || groups > kMostWindow) return misfit("{} groups", groups);
  return {};
}

Status check_channels(std::int64_t channels, const ConvChannels& weights, std::int64_t groups) {
  if (weights.in != channels) {
    return misfit("input has {} channels, weights want {}", channels, weights.in);
  }
  if (channels % groups != 0 || weights.out % groups != 0) {
    return misfit("{} and {} channels do not divide into {} groups", channels, weights.out, groups);
  }
  return {};
}

}  // namespace

Ints spatial_extents(const Shape& shape, Layout layout) {
  const auto first = layout == Layout::nchw ? 2 : 1;
  return {shape.begin() + first,
          shape.begin() + first + static_cast<std::ptrdiff_t>(shape.size() - 2)};
}

std::size_t channel_axis(const Shape& shape, Layout layout) {
  return layout == Layout::nchw ? 1 : shape.size() - 1;
}

Padding resolve_padding(const Window& window, const Ints& extents) {
  if (window.auto_pad == AutoPad::explicit_pads) return {window.pads_begin, window.pads_end};
  Padding padding{Ints(extents.size(), 0), Ints(extents.size(), 0)};
  if (window.auto_pad == AutoPad::valid) return padding;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto stride = window.strides[i];
    const auto windows = (extents[i] + stride - 1) / stride;
    const auto total =
        std::max<std::int64_t>(0, (windows - 1) * stride + reach(window, i) - extents[i]);
    const auto smaller = total / 2;
    padding.begin[i] = window.auto_pad == AutoPad::same_upper ? smaller : total - smaller;
    padding.end[i] = total - padding.begin[i];
  }
  return padding;
}

Outcomes infer(const Conv& op, const Node&, const Operands& in) {
  const auto* x = in.shape(0);
  const auto* weights = in.shape(1);
  if (x == nullptr || weights == nullptr) return open(in.dtype(0));
  FLEETFIT_TRY(check_conv(op.window, op.groups, op.layout, *x, *weights));
  const auto out = weights->front();
  const auto per_group = op.layout == Layout::nchw ? (*weights)[1] : weights->back();
  const auto channels = (*x)[channel_axis(*x, op.layout)];
  if (per_group > kMostWindow) return misfit("weights {} are absurdly large", to_string(*weights));
  FLEETFIT_TRY(check_channels(channels, {per_group * op.groups, out}, op.groups));
  FLEETFIT_TRY(check_bias(in, 2, out));
  FLEETFIT_ASSIGN(const auto extents, windows_that_fit(op.window, spatial_extents(*x, op.layout)));
  return one(in.dtype(0), image_shape(x->front(), out, extents, op.layout));
}

Outcomes infer(const ConvTranspose& op, const Node&, const Operands& in) {
  const auto* x = in.shape(0);
  const auto* weights = in.shape(1);
  if (x == nullptr || weights == nullptr) return open(in.dtype(0));
  FLEETFIT_TRY(check_conv(op.window, op.groups, op.layout, *x, *weights));
  const bool nchw = op.layout == Layout::nchw;
  const auto per_group = nchw ? (*weights)[1] : weights->back();
  if (per_group > kMostWindow) return misfit("weights {} are absurdly large", to_string(*weights));
  const ConvChannels wanted = nchw ? ConvChannels{weights->front(), per_group * op.groups}
                                   : ConvChannels{per_group * op.groups, weights->front()};
  FLEETFIT_TRY(check_channels((*x)[channel_axis(*x, op.layout)], wanted, op.groups));
  FLEETFIT_TRY(check_bias(in, 2, wanted.out));

  auto extents = spatial_extents(*x, op.layout);
  const auto spatial = extents.size();
  if (op.output_padding.size() != spatial || !within(op.output_padding, 0))
    return misfit("output padding does not fit");
  if (!op.output_shape.empty() &&
      (op.output_shape.size() != spatial || !within(op.output_shape, 1))) {
    return misfit("output shape {} does not fit", to_string(op.output_shape));
  }
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto stride = op.window.strides[i];
    const bool same =
        op.window.auto_pad == AutoPad::same_upper || op.window.auto_pad == AutoPad::same_lower;
    const bool pads = op.window.auto_pad == AutoPad::explicit_pads;
    if (!op.output_shape.empty()) {
      extents[i] = op.output_shape[i];
    } else if (same) {
      extents[i] *= stride;
    } else {
      extents[i] = (extents[i] - 1) * stride + op.output_padding[i] + reach(op.window, i) -
                   (pads ? op.window.pads_begin[i] + op.window.pads_end[i] : 0);
    }
    if (extents[i] < 1) return misfit("pads leave nothing of the result");
  }
  return one(in.dtype(0), image_shape(x->front(), wanted.out, extents, op.layout));
}

Outcomes infer(const Pool& op, const Node& node, const Operands& in) {
  const auto* x = in.shape(0);
  if (x == nullptr) return open(in.dtype(0));
  FLEETFIT_TRY(check_image(*x));
  FLEETFIT_TRY(check_window(op.window, x->size() - 2));
  FLEETFIT_ASSIGN(const auto extents, windows_that_fit(op.window, spatial_extents(*x, op.layout)));
  auto shape = image_shape(x->front(), (*x)[channel_axis(*x, op.layout)], extents, op.layout);
  std::vector<Outcome> outcomes{{in.dtype(0), shape}};
  if (node.outputs.size() > 1) outcomes.push_back({DType::i64, std::move(shape)});
  return outcomes;
}

Outcomes infer(const GlobalPool& op, const Node&, const Operands& in) {
  const auto* x = in.shape(0);
  if (x == nullptr) return open(in.dtype(0));
  FLEETFIT_TRY(check_image(*x));
  return one(in.dtype(0), image_shape(x->front(), (*x)[channel_axis(*x, op.layout)],
                                      Ints(x->size() - 2, 1), op.layout));
}

Outcomes infer(const Gemm& op, const Node&, const Operands& in) {
  const auto* a = in.shape(0);
  const auto* b = in.shape(1);
  if (a == nullptr || b == nullptr) return open(in.dtype(0));
  if (b->size() != 2) return misfit("B is {}, not a matrix", to_string(*b));
  const auto depth = op.trans_b ? (*b)[1] : (*b)[0];
  const auto columns = op.trans_b ? (*b)[0] : (*b)[1];
  if (op.trans_a && a->size() != 2) return misfit("A is {}, not a matrix", to_string(*a));

  const auto count = elements(*a);
  if (a->size() == 2) {
    const auto inner = op.trans_a ? (*a)[0] : (*a)[1];
    if (inner != depth && (op.trans_a || op.keep_leading || depth == 0 || count % depth != 0)) {
      return misfit("A is {} and B is {}", to_string(*a), to_string(*b));
    }
  }
  if (depth == 0 || count % depth != 0)
    return misfit("A is {} and B is {}", to_string(*a), to_string(*b));
  Shape shape{count / depth, columns};
  if (op.keep_leading) {
    if (a->empty() || a->back() != depth)
      return misfit("A is {} and B is {}", to_string(*a), to_string(*b));
    shape = *a;
    shape.back() = columns;
  }
  if (const auto* c = in.shape(2)) {
    FLEETFIT_ASSIGN(const auto sum, broadcast(shape, *c));
    if (sum != shape) return misfit("C is {} and the product {}", to_string(*c), to_string(shape));
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const MatMul& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr || in.shape(1) == nullptr) return open(in.dtype(0));
  Shape a = *in.shape(0);
  Shape b = *in.shape(1);
  if (a.empty() || b.empty()) return misfit("a scalar has no matrix product");
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if ((row && op.trans_a) || (column && op.trans_b)) return misfit("a vector cannot be transposed");
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (op.trans_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (op.trans_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
  if (a.back() != b[b.size() - 2]) {
    return misfit("operands are {} and {}", to_string(*in.shape(0)), to_string(*in.shape(1)));
  }
  const auto rows = a[a.size() - 2];
  const auto columns = b.back();
  FLEETFIT_ASSIGN(auto shape, broadcast({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}));
  if (!row) shape.push_back(rows);
  if (!column) shape.push_back(columns);
  return one(in.dtype(0), shape);
}

Outcomes infer(const MultiHeadAttention& op, const Node&, const Operands& in) {
  const auto* q = in.shape(0);
  if (q == nullptr || in.shape(9) == nullptr) return open(in.dtype(0));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto* x = in.shape(i);
    const auto* weights = in.shape(3 + 2 * i);
    if (x == nullptr || weights == nullptr) return open(in.dtype(0));
    if (x->size() < 2 || x->size() > 3 || weights->size() != 2)
      return misfit("operand {} is {}", i, to_string(*x));
    if (x->back() != weights->back())
      return misfit("operand {} is {}, its weights {}", i, to_string(*x), to_string(*weights));
  }
  const auto width = in.shape(3)->front();
  if (op.heads < 1 || width % op.heads != 0)
    return misfit("{} heads for {} features", op.heads, width);
  if (in.shape(1)->size() != q->size() || in.shape(2)->size() != q->size() ||
      (*in.shape(1))[q->size() - 2] != (*in.shape(2))[q->size() - 2]) {
    return misfit("keys {} and values {} do not go together", to_string(*in.shape(1)),
                  to_string(*in.shape(2)));
  }
  auto shape = *q;
  shape.back() = in.shape(9)->front();
  return one(in.dtype(0), shape);
}

Outcomes infer(const BatchNorm& op, const Node&, const Operands& in) {
  const auto* x = in.shape(0);
  if (x == nullptr) return open(in.dtype(0));
  if (x->size() < 2) return misfit("{} has no channels", to_string(*x));
  const auto channels = (*x)[channel_axis(*x, op.layout)];
  for (std::size_t i = 1; i < 5; ++i) {
    if (in.shape(i) != nullptr && elements(*in.shape(i)) != channels) {
      return misfit("{} values for {} channels", elements(*in.shape(i)), channels);
    }
  }
  return one(in.dtype(0), *x);
}

Outcomes infer(const LayerNorm& op, const Node&, const Operands& in) {
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

Outcomes infer(const Softmax& op, const Node&, const Operands& in) {
  const auto* x = in.shape(0);
  if (x == nullptr) return open(in.dtype(0));
  if (const auto axis = resolve_axis(op.axis, x->size()); !axis && !x->empty())
    return tl::unexpected(axis.error());
  return one(in.dtype(0), *x);
}

Outcomes infer(const LpNormalization& op, const Node&, const Operands& in) {
  const auto* x = in.shape(0);
  if (x == nullptr) return open(in.dtype(0));
  FLEETFIT_TRY(resolve_axis(op.axis, x->size()));
  return one(in.dtype(0), *x);
}

}  // namespace fleetfit::graph
