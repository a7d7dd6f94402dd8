#include <algorithm>
#include <numeric>

#include "fleetfit/graph/shape_inference.h"
#include "graph/evaluate/kernels.h"
#include "graph/evaluate/reals.h"
#include "graph/evaluate/window.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

constexpr std::size_t kMostSpatial = 3;

struct Geometry {
  Spatial in{1, 1, 1};
  Spatial out{1, 1, 1};
  Sliding window;
};

/// The tap number `index` of a kernel.
Spatial tap_of(const Spatial& kernel, std::int64_t index) {
  return {index / (kernel[1] * kernel[2]), index / kernel[2] % kernel[1], index % kernel[2]};
}

/// Where a kernel reads every element of the image once and in order, its rows can be read as one,
/// which is much faster for small images.
void join_rows(Geometry& g) {
  const Spatial ones{1, 1, 1};
  if (g.window.kernel == ones && g.window.strides == ones && g.in == g.out &&
      g.window.pads == Spatial{0, 0, 0}) {
    g.in = g.out = {1, 1, volume(g.in)};
  }
}

/// sums += weight * what the tap sees of one channel's image, for every output position.
template <class T>
void add_tap(const Geometry& g, const Spatial& tap, const T* image, double weight, double* sums) {
  const auto& w = g.window;
  const auto first = w.position(2, 0, tap[2]);
  const auto columns = indices_inside(first, w.strides[2], g.in[2], g.out[2]);
  for (std::int64_t z = 0; z < g.out[0]; ++z) {
    const auto in_z = w.position(0, z, tap[0]);
    if (in_z < 0 || in_z >= g.in[0]) continue;
    for (std::int64_t y = 0; y < g.out[1]; ++y) {
      const auto in_y = w.position(1, y, tap[1]);
      if (in_y < 0 || in_y >= g.in[1]) continue;
      const T* row = image + (in_z * g.in[1] + in_y) * g.in[2];
      double* out = sums + (z * g.out[1] + y) * g.out[2];
      if (w.strides[2] == 1) {
        for (auto x = columns.begin; x < columns.end; ++x) out[x] += weight * row[first + x];
      } else {
        for (auto x = columns.begin; x < columns.end; ++x) {
          out[x] += weight * row[first + x * w.strides[2]];
        }
      }
    }
  }
}

/// The opposite way: spreads one channel's image over the output positions that the tap leads to.
template <class T>
void spread_tap(const Geometry& g, const Spatial& tap, const T* image, double weight,
                double* sums) {
  const auto& w = g.window;
  const auto first = w.position(2, 0, tap[2]);
  const auto columns = indices_inside(first, w.strides[2], g.out[2], g.in[2]);
  for (std::int64_t z = 0; z < g.in[0]; ++z) {
    const auto out_z = w.position(0, z, tap[0]);
    if (out_z < 0 || out_z >= g.out[0]) continue;
    for (std::int64_t y = 0; y < g.in[1]; ++y) {
      const auto out_y = w.position(1, y, tap[1]);
      if (out_y < 0 || out_y >= g.out[1]) continue;
      const T* row = image + (z * g.in[1] + y) * g.in[2];
      double* out = sums + (out_z * g.out[1] + out_y) * g.out[2];
      for (auto x = columns.begin; x < columns.end; ++x) {
        out[first + x * w.strides[2]] += weight * row[x];
      }
    }
  }
}

/// Extents of a convolution and where its operands lie, all N x C x … and weights as ONNX has them.
struct Channels {
  std::int64_t batch = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t groups = 1;

  std::int64_t in_per_group() const { return in / groups; }
  std::int64_t out_per_group() const { return out / groups; }
};

struct Operation {
  Channels channels;
  Geometry geometry;
  bool transposed = false;

  /// Number of the weights' kernel between two channels, the input one counted within its group.
  std::int64_t kernel_index(std::int64_t out, std::int64_t in_of_group) const {
    if (!transposed) return out * channels.in_per_group() + in_of_group;
    const auto group = out / channels.out_per_group();
    return (group * channels.in_per_group() + in_of_group) * channels.out_per_group() +
           out % channels.out_per_group();
  }
};

template <class T>
void add_channel(const Operation& op, const T* image, const T* kernel, double* sums) {
  const auto& g = op.geometry;
  for (std::int64_t tap = 0; tap < volume(g.window.kernel); ++tap) {
    if (op.transposed) {
      spread_tap(g, tap_of(g.window.kernel, tap), image, kernel[tap], sums);
    } else {
      add_tap(g, tap_of(g.window.kernel, tap), image, kernel[tap], sums);
    }
  }
}

template <class T>
Value convolve(const Operation& op, const Value& x, const Value& weights, const Value* bias,
               const Form& form) {
  const Reals<T> image(x);
  const Reals<T> kernel(weights);
  const auto& c = op.channels;
  const auto shift = bias != nullptr ? read<double>(*bias) : std::vector<double>(c.out, 0);
  const auto in_size = volume(op.geometry.in);
  const auto taps = volume(op.geometry.window.kernel);
  std::vector<double> sums(volume(op.geometry.out));
  std::vector<T> result;
  result.reserve(c.batch * c.out * sums.size());
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t out = 0; out < c.out; ++out) {
      std::fill(sums.begin(), sums.end(), shift[out]);
      const auto first = out / c.out_per_group() * c.in_per_group();
      for (std::int64_t in = 0; in < c.in_per_group(); ++in) {
        add_channel(op, image.data() + (n * c.in + first + in) * in_size,
                    kernel.data() + op.kernel_index(out, in) * taps, sums.data());
      }
      for (const auto sum : sums) result.push_back(static_cast<T>(sum));
    }
  }
  return write(form, result);
}

Values run_convolution(const Operation& op, const Call& call, const Value& x, const Value& weights,
                       Layout layout) {
  const Form form{call.result().dtype, to_channels_first(call.result().shape, layout)};
  const auto result = with_reals(
      form.dtype, [&]<class T>(T) { return convolve<T>(op, x, weights, call.optional(2), form); });
  return one(from_channels_first(result, layout));
}

/// Weights output x kernel… x input/groups as ONNX's input x output/groups x kernel….
Value transposed_weights(const Value& weights, std::int64_t groups) {
  const auto& shape = weights.shape;
  const auto rank = shape.size();
  Shape split{groups, shape[0] / groups};
  split.insert(split.end(), shape.begin() + 1, shape.end());
  Ints perm{0, static_cast<std::int64_t>(rank), 1};
  Shape joined{shape.back() * groups, shape[0] / groups};
  for (std::size_t i = 1; i + 1 < rank; ++i) {
    perm.push_back(static_cast<std::int64_t>(i) + 1);
    joined.push_back(shape[i]);
  }
  return reshaped(permuted(reshaped(weights, split), perm), joined);
}

Status check_spatial(const Call& call) {
  if (call.input(0).shape.size() <= kMostSpatial + 2) return {};
  return fail(ErrorCode::unsupported, "more than three spatial dimensions");
}

}  // namespace

Values run(const Conv& op, const Call& call) {
  FLEETFIT_TRY(check_spatial(call));
  const auto x = to_channels_first(call.input(0), op.layout);
  const auto weights = to_channels_first(call.input(1), op.layout);
  const auto out = to_channels_first(call.result().shape, op.layout);
  const auto padding = resolve_padding(op.window, Ints(x.shape.begin() + 2, x.shape.end()));
  Operation operation{
      .channels = {x.shape[0], x.shape[1], out[1], op.groups},
      .geometry = {spatial_of(x.shape), spatial_of(out), sliding(op.window, padding.begin)}};
  join_rows(operation.geometry);
  return run_convolution(operation, call, x, weights, op.layout);
}

Values run(const ConvTranspose& op, const Call& call) {
  FLEETFIT_TRY(check_spatial(call));
  const auto x = to_channels_first(call.input(0), op.layout);
  const auto weights =
      op.layout == Layout::nchw ? call.input(1) : transposed_weights(call.input(1), op.groups);
  const auto out = to_channels_first(call.result().shape, op.layout);
  const auto padding = resolve_padding(op, Ints(x.shape.begin() + 2, x.shape.end()),
                                       Ints(out.begin() + 2, out.end()));
  const Operation operation{
      .channels = {x.shape[0], x.shape[1], out[1], op.groups},
      .geometry = {spatial_of(x.shape), spatial_of(out), sliding(op.window, padding.begin)},
      .transposed = true};
  return run_convolution(operation, call, x, weights, op.layout);
}

}  // namespace fleetfit::graph::interpreter
