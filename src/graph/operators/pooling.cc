#include <array>
#include <limits>

#include "fleetfit/graph/shape_inference.h"
#include "graph/evaluate/window.h"
#include "graph/operators/family.h"
#include "graph/operators/windows.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace tflite;

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

Result<Shape> shape_of(const GlobalPool& op, const Shape& x) {
  FLEETFIT_TRY(check_image(x));
  return image_shape(x.front(), x[channel_axis(x, op.layout)], Ints(x.size() - 2, 1), op.layout);
}

void link(const Pool& op, ChannelLinks& links) { links.pool(op.layout); }

void link(const GlobalPool& op, ChannelLinks& links) { links.pool(op.layout); }

std::string_view kernel_kind_of(const GlobalPool& op) {
  return op.kind == PoolKind::average ? "mean" : "reduce";
}

quantization::Role role_of(const Pool& op, const Graph&, const Node& node) {
  return op.kind == PoolKind::max && !node.activation ? quantization::Role::moves
                                                      : quantization::Role::computes;
}

/// What a window covers along one dimension: taps inside the image, and how many lie in the image
/// or its padding.
struct Cover {
  Span taps;
  std::int64_t padded = 0;
};

struct Pooling {
  PoolKind kind = PoolKind::max;
  bool count_padding = false;
  Spatial in{1, 1, 1};
  Spatial out{1, 1, 1};
  Spatial pads_end{0, 0, 0};
  Sliding window;

  Cover cover(std::size_t axis, std::int64_t position) const {
    const auto first = window.position(axis, position, 0);
    const auto step = window.dilations[axis];
    const auto pad = window.pads[axis];
    const auto padded_extent = in[axis] + pad + pads_end[axis];
    const auto padded = indices_inside(first + pad, step, padded_extent, window.kernel[axis]);
    return {indices_inside(first, step, in[axis], window.kernel[axis]), padded.end - padded.begin};
  }
};

struct Pooled {
  double value = 0;
  std::int64_t index = 0;  ///< of the largest element in the channel's image
};

/// Calls `visit` with the index of each element of the image that the window covers.
template <class Visit>
void for_each_covered(const Pooling& p, const Spatial& at, const std::array<Cover, 3>& covers,
                      Visit&& visit) {
  for (auto i = covers[0].taps.begin; i < covers[0].taps.end; ++i) {
    const auto z = p.window.position(0, at[0], i);
    for (auto j = covers[1].taps.begin; j < covers[1].taps.end; ++j) {
      const auto y = p.window.position(1, at[1], j);
      for (auto k = covers[2].taps.begin; k < covers[2].taps.end; ++k) {
        visit((z * p.in[1] + y) * p.in[2] + p.window.position(2, at[2], k));
      }
    }
  }
}

Pooled largest(const Pooling& p, const double* image, const Spatial& at,
               const std::array<Cover, 3>& covers) {
  Pooled best{-std::numeric_limits<double>::infinity(), 0};
  bool found = false;
  for_each_covered(p, at, covers, [&](std::int64_t index) {
    if (found && !(image[index] > best.value)) return;
    found = true;
    best = {image[index], index};
  });
  return best;
}

Pooled average(const Pooling& p, const double* image, const Spatial& at,
               const std::array<Cover, 3>& covers) {
  double sum = 0;
  std::int64_t inside = 0;
  for_each_covered(p, at, covers, [&](std::int64_t index) {
    sum += image[index];
    ++inside;
  });
  const auto count =
      p.count_padding ? covers[0].padded * covers[1].padded * covers[2].padded : inside;
  return {count == 0 ? 0 : sum / static_cast<double>(count), 0};
}

void pool_image(const Pooling& p, const double* image, Pooled* out) {
  for (std::int64_t z = 0; z < p.out[0]; ++z) {
    for (std::int64_t y = 0; y < p.out[1]; ++y) {
      for (std::int64_t x = 0; x < p.out[2]; ++x) {
        const std::array covers{p.cover(0, z), p.cover(1, y), p.cover(2, x)};
        *out++ = p.kind == PoolKind::max ? largest(p, image, {z, y, x}, covers)
                                         : average(p, image, {z, y, x}, covers);
      }
    }
  }
}

std::vector<Pooled> pool(const Pooling& p, const Value& x) {
  const auto numbers = read<double>(x);
  const auto images = x.shape[0] * x.shape[1];
  std::vector<Pooled> pooled(images * volume(p.out));
  for (std::int64_t i = 0; i < images; ++i) {
    pool_image(p, numbers.data() + i * volume(p.in), pooled.data() + i * volume(p.out));
  }
  return pooled;
}

/// ONNX counts the largest element's place over the whole tensor.
std::vector<std::int64_t> places(const Pooling& p, const std::vector<Pooled>& pooled) {
  std::vector<std::int64_t> all;
  all.reserve(pooled.size());
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    const auto image = static_cast<std::int64_t>(i) / volume(p.out);
    all.push_back(image * volume(p.in) + pooled[i].index);
  }
  return all;
}

Values results(const Pooling& p, const Value& x, const Call& call, Layout layout) {
  const auto pooled = pool(p, x);
  const auto shape = to_channels_first(call.result().shape, layout);
  std::vector<double> numbers;
  numbers.reserve(pooled.size());
  for (const auto& one : pooled) numbers.push_back(one.value);
  std::vector<Value> all{
      from_channels_first(write(Form{call.result().dtype, shape}, numbers), layout)};
  if (call.results.size() > 1) {
    all.push_back(from_channels_first(write(Form{DType::i64, shape}, places(p, pooled)), layout));
  }
  return all;
}

Status check_spatial(const Value& x) {
  if (x.shape.size() <= 5) return {};
  return fail(ErrorCode::unsupported, "more than three spatial dimensions");
}

Values run(const Pool& op, const Call& call) {
  FLEETFIT_TRY(check_spatial(call.input(0)));
  const auto x = to_channels_first(call.input(0), op.layout);
  const auto padding = resolve_padding(op.window, Ints(x.shape.begin() + 2, x.shape.end()));
  const Pooling pooling{.kind = op.kind,
                        .count_padding = op.count_include_pad,
                        .in = spatial_of(x.shape),
                        .out = spatial_of(to_channels_first(call.result().shape, op.layout)),
                        .pads_end = to_spatial(padding.end, 0),
                        .window = sliding(op.window, padding.begin)};
  return results(pooling, x, call, op.layout);
}

Values run(const GlobalPool& op, const Call& call) {
  const auto x = to_channels_first(call.input(0), op.layout);
  // All spatial dimensions as one, so that there may be any number of them.
  const auto count = elements(Shape(x.shape.begin() + 2, x.shape.end()));
  const Pooling pooling{.kind = op.kind, .in = {1, 1, count}, .window = {.kernel = {1, 1, count}}};
  return results(pooling, x, call, op.layout);
}

Result<Operator> read_onnx(Pool op, NodeReader& reader) {
  FLEETFIT_ASSIGN(op.window, read_window(reader, reader.ints("kernel_shape")));
  if (reader.integer("storage_order", 0) != 0)
    return unknown(reader, "indices in column-major order");
  op.count_include_pad = reader.integer("count_include_pad", 0) != 0;
  return op;
}

void write_onnx(const Pool& op, NodeWriter& out) {
  write_window(op.window, out);
  out.set("ceil_mode", op.window.ceil_mode);
  if (op.kind == PoolKind::average) out.set("count_include_pad", op.count_include_pad);
  if (op.kind == PoolKind::max) out.set("dilations", op.window.dilations);
}

template <PoolKind kind>
Result<Converted> convert_pool(Conversion& c) {
  const auto options = c.options("Pool2DOptions");
  if (!options) return refuse(std::string(kNoOptions));
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  FLEETFIT_ASSIGN(
      auto w,
      window({options.integer("filter_height"), options.integer("filter_width")},
             {.stride_h = options.integer("stride_h"), .stride_w = options.integer("stride_w")},
             options.name("padding")));
  return Converted{.op = Pool{.kind = kind, .window = std::move(w), .layout = Layout::nhwc},
                   .inputs = {c.input(0)},
                   .activation = *activation};
}

// In the order of PoolKind.
constexpr std::array<std::string_view, 2> kPoolNames = {"MaxPool", "AveragePool"};
constexpr std::array<std::string_view, 2> kGlobalPoolNames = {"GlobalMaxPool", "GlobalAveragePool"};

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Pool>({.number = 10,
                    .kinds = names_by<&Pool::kind>(kPoolNames),
                    .arity = {1, 1, 2},
                    .kernel_kind = "pooling"}),
    describe<GlobalPool>({.number = 11,
                          .kinds = names_by<&GlobalPool::kind>(kGlobalPoolNames),
                          .quantized = quantization::Role::computes}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"AVERAGE_POOL_2D", convert_pool<PoolKind::average>},
    {"MAX_POOL_2D", convert_pool<PoolKind::max>},
});

}  // namespace

OperatorFamily pooling_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
