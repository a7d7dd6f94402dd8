// Convolutions of any kind as products of matrices: each output pixel is a row of what the kernel
// covers.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "engine/own/copies.h"
#include "engine/own/own.h"
#include "engine/own/product.h"
#include "engine/own/window.h"

namespace fleetfit::engine::own {
namespace {

using graph::Layout;

constexpr std::int64_t kPixels = 48;  // that a thread gathers at a time

struct Convolution {
  ImageShape in;
  ImageShape out;
  Sliding window;
  bool transposed = false;
  std::int64_t groups = 1;
  std::int64_t slots = 1;  ///< threads that may work at a time

  std::int64_t in_per_group() const { return in.channels / groups; }
  std::int64_t out_per_group() const { return out.channels / groups; }
  std::int64_t depth() const { return window.taps() * in_per_group(); }
  std::int64_t packed() const { return packed_floats(depth(), out_per_group()); }

  /// The input position that meets a tap at an output position, -1 for none.
  std::int64_t source(std::size_t axis, std::int64_t at, std::int64_t tap) const {
    if (!transposed) {
      const std::int64_t position = window.position(axis, at, tap);
      return position >= 0 && position < in.extents[axis] ? position : -1;
    }
    const std::int64_t spread = at + window.pads[axis] - tap * window.dilations[axis];
    if (spread < 0 || spread % window.strides[axis] != 0) return -1;
    const std::int64_t position = spread / window.strides[axis];
    return position < in.extents[axis] ? position : -1;
  }

  /// Calls visit(tap, pixel of the input or -1).
  template <class Visit>
  void for_each_tap(std::int64_t pixel, const Visit& visit) const {
    Spatial at{};
    for (std::size_t axis = 3; axis-- > 0;) {
      at[axis] = pixel % out.extents[axis];
      pixel /= out.extents[axis];
    }
    std::int64_t tap = 0;
    for (std::int64_t i = 0; i < window.kernel[0]; ++i) {
      const std::int64_t z = source(0, at[0], i);
      for (std::int64_t j = 0; j < window.kernel[1]; ++j) {
        const std::int64_t y = source(1, at[1], j);
        for (std::int64_t k = 0; k < window.kernel[2]; ++k, ++tap) {
          const std::int64_t x = source(2, at[2], k);
          const bool outside = z < 0 || y < 0 || x < 0;
          visit(tap, outside ? -1 : (z * in.extents[1] + y) * in.extents[2] + x);
        }
      }
    }
  }

  /// What the kernel covers of a group's channels at an output pixel.
  void gather(const float* image, std::int64_t group, std::int64_t pixel, float* row) const {
    const std::int64_t channels = in_per_group();
    for_each_tap(pixel, [&](std::int64_t tap, std::int64_t from) {
      float* to = row + tap * channels;
      if (from < 0) {
        std::fill_n(to, channels, 0.0F);
      } else {
        std::memcpy(to, image + from * in.channels + group * channels,
                    static_cast<std::size_t>(channels) * sizeof(float));
      }
    });
  }

  /// Pixels [first, first + count) of one image.
  void convolve(const float* image, const float* weights, const float* bias, float* out_image,
                std::int64_t first, std::int64_t count, float* rows) const {
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t i = 0; i < count; ++i) gather(image, group, first + i, rows + i * depth());
      const std::int64_t column = group * out_per_group();
      multiply({.rows = count,
                .depth = depth(),
                .columns = out_per_group(),
                .bias = bias == nullptr ? nullptr : bias + column},
               {rows, depth(), 1}, weights + group * packed(),
               out_image + first * out.channels + column, out.channels);
    }
  }

  void run(const float* x, const float* weights, const float* bias, float* to, float* room) const {
    const std::int64_t parts = (out.pixels() + kPixels - 1) / kPixels;
    const std::int64_t count = in.batch * parts;
    parallel_each(slots, kWorthAThread, [&](std::int64_t slot) {
      for (std::int64_t i = count * slot / slots; i < count * (slot + 1) / slots; ++i) {
        const std::int64_t n = i / parts;
        const std::int64_t first = i % parts * kPixels;
        convolve(x + n * in.pixels() * in.channels, weights, bias,
                 to + n * out.pixels() * out.channels, first,
                 std::min(kPixels, out.pixels() - first), room + slot * kPixels * depth());
      }
    });
  }

  /// One channel of input for each of output: `weights` has a row of channels for each tap.
  void run_depthwise(const float* x, const float* weights, const float* bias, float* to) const {
    const std::int64_t channels = in.channels;
    parallel_each(in.batch * out.pixels(), window.taps() * channels, [&](std::int64_t i) {
      const float* image = x + i / out.pixels() * in.pixels() * channels;
      float* sums = to + i * channels;
      if (bias == nullptr) {
        std::fill_n(sums, channels, 0.0F);
      } else {
        std::copy_n(bias, channels, sums);
      }
      for_each_tap(i % out.pixels(), [&](std::int64_t tap, std::int64_t from) {
        if (from < 0) return;
        add_product_row(image + from * channels, weights + tap * channels, sums, channels);
      });
    });
  }

  bool is_depthwise() const { return groups == in.channels && out.channels == groups; }
};

/// The weights in the order output, taps, input, from either layout.
std::vector<float> weights_by_tap(const Operand& weights, const Convolution& c, Layout layout) {
  const auto values = weights.constant->as<float>();
  std::vector<float> result(values.size());
  Shape shape;
  Ints perm;
  if (layout == Layout::nhwc) return {values.begin(), values.end()};
  if (c.transposed) {  // input x output/groups x taps
    shape = {c.groups, c.in_per_group(), c.out_per_group(), c.window.taps()};
    perm = {0, 2, 3, 1};
  } else {  // output x input/groups x taps
    shape = {c.out.channels, c.in_per_group(), c.window.taps()};
    perm = {0, 2, 1};
  }
  StridedCopy(permuted_dims(shape, perm), sizeof(float))
      .run(std::as_bytes(values).data(), std::as_writable_bytes(std::span(result)).data());
  return result;
}

/// Weights as the loops read them.
std::vector<float> prepared_weights(const Operand& operand, const Convolution& c, Layout layout) {
  const auto weights = weights_by_tap(operand, c, layout);
  if (c.is_depthwise()) {  // taps of each channel -> channels of each tap
    std::vector<float> rows(weights.size());
    StridedCopy(permuted_dims({c.groups, c.window.taps()}, {1, 0}), sizeof(float))
        .run(std::as_bytes(std::span(weights)).data(),
             std::as_writable_bytes(std::span(rows)).data());
    return rows;
  }
  std::vector<float> packed(static_cast<std::size_t>(c.groups * c.packed()));
  for (std::int64_t group = 0; group < c.groups; ++group) {
    pack({weights.data() + group * c.out_per_group() * c.depth(), 1, c.depth()}, c.depth(),
         c.out_per_group(), packed.data() + group * c.packed());
  }
  return packed;
}

/// Swaps channels and pixels of every image.
StridedCopy swapping(const ImageShape& shape, bool to_last) {
  const Shape split = to_last ? Shape{shape.batch, shape.channels, shape.pixels()}
                              : Shape{shape.batch, shape.pixels(), shape.channels};
  return {permuted_dims(split, {0, 2, 1}), sizeof(float)};
}

KernelPtr make_any(const Task& task, Convolution c, Layout layout) {
  if (!all_real(task) || !task.inputs[1].constant) return nullptr;
  const std::size_t adds = task.adds_last_input ? task.inputs.size() - 1 : 0;
  const bool has_bias = has_input(task, 2) && adds != 2;
  c.slots = std::max(1, task.threads);
  auto weights = prepared_weights(task.inputs[1], c, layout);
  const std::size_t held = weights.size() * sizeof(float);
  const bool swaps = layout == Layout::nchw;
  const std::size_t gathered =
      c.is_depthwise() ? 0 : bytes_of_floats(c.slots * kPixels * c.depth());
  const std::size_t in_bytes = swaps ? aligned(storage_bytes(task.inputs[0])) : 0;
  const std::size_t out_bytes = swaps ? aligned(storage_bytes(task.outputs[0])) : 0;
  const std::int64_t count = graph::elements(task.outputs[0].shape);
  StridedCopy to_last = swapping(c.in, true);
  StridedCopy to_first = swapping(c.out, false);
  return function_kernel(
      task, c.is_depthwise() ? "depthwise convolution" : "convolution",
      [=, weights = std::move(weights), to_last = std::move(to_last),
       to_first = std::move(to_first)](const Memory& memory) {
        const auto* x = memory.in<float>();
        auto* out = memory.out<float>();
        if (swaps) {
          to_last.run(memory.inputs[0], memory.scratch + gathered);
          x = reinterpret_cast<const float*>(memory.scratch + gathered);
          out = reinterpret_cast<float*>(memory.scratch + gathered + in_bytes);
        }
        const float* bias = has_bias ? memory.in<float>(2) : nullptr;
        if (c.is_depthwise()) {
          c.run_depthwise(x, weights.data(), bias, out);
        } else {
          c.run(x, weights.data(), bias, out, reinterpret_cast<float*>(memory.scratch));
        }
        if (swaps) to_first.run(memory.scratch + gathered + in_bytes, memory.outputs[0]);
        if (adds == 0) return;
        parallel(count, grain_of(1), [&](std::int64_t begin, std::int64_t end) {
          add_scaled_row(memory.in<float>(adds) + begin, 1.0F, memory.out<float>() + begin,
                         end - begin);
        });
      },
      gathered + in_bytes + out_bytes, held);
}

KernelPtr make_convolution(const Task& task, const graph::Conv& op) {
  const auto in = image_shape(task.inputs[0].shape, op.layout);
  const auto out = image_shape(task.outputs[0].shape, op.layout);
  if (!in || !out) return nullptr;
  const auto padding =
      graph::resolve_padding(op.window, graph::spatial_extents(task.inputs[0].shape, op.layout));
  return make_any(
      task, {.in = *in, .out = *out, .window = sliding(op.window, padding), .groups = op.groups},
      op.layout);
}

KernelPtr make_transposed_convolution(const Task& task, const graph::ConvTranspose& op) {
  const auto in = image_shape(task.inputs[0].shape, op.layout);
  const auto out = image_shape(task.outputs[0].shape, op.layout);
  if (!in || !out) return nullptr;
  const auto padding =
      graph::resolve_padding(op, graph::spatial_extents(task.inputs[0].shape, op.layout),
                             graph::spatial_extents(task.outputs[0].shape, op.layout));
  return make_any(task,
                  {.in = *in,
                   .out = *out,
                   .window = sliding(op.window, padding),
                   .transposed = true,
                   .groups = op.groups},
                  op.layout);
}

}  // namespace

std::span<const OwnKernels> convolution_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Conv, make_convolution>({.adds = true}),
      kernels<graph::ConvTranspose, make_transposed_convolution>({.adds = true}),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
