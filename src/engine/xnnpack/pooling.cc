#include <algorithm>
#include <array>
#include <numeric>

#include "engine/xnnpack/xnnpack.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::engine::xnnpack {
namespace {

using graph::DType;
using graph::Ints;

/// An image with the window that goes over it.
struct Pooling {
  Image in;
  Window2d window;

  bool is_padded() const {
    const auto& w = window;
    return (w.pads_begin.height | w.pads_begin.width | w.pads_end.height | w.pads_end.width) != 0;
  }
};

template <class T, class Create, class Setup>
KernelPtr make_largest_of(const Task& task, const char* name, const Pooling& pooling, T low, T high,
                          KernelParts::Activation activation, Create create_function, Setup setup) {
  const auto& [in, w] = pooling;
  return one_operator<T>(
      task, name, activation,
      create(create_function, w.pads_begin.height, w.pads_end.width, w.pads_end.height,
             w.pads_begin.width, w.kernel.height, w.kernel.width, w.strides.height, w.strides.width,
             w.dilations.height, w.dilations.width, in.channels, in.channels, in.channels, low,
             high, 0U),
      setup, in.batch, in.height, in.width);
}

KernelPtr make_largest(const Task& task, const Pooling& pooling) {
  if (!same_meaning(task.inputs[0], task.outputs[0])) return nullptr;
  const auto& activation = task.node.activation;
  if (is_real(task.inputs[0])) {
    const auto bounds = bounds_of(activation);
    const auto [low, high] = bounds.value_or(Bounds{});
    return make_largest_of(task, "max pooling f32", pooling, low, high, is_included(bounds),
                           FLEETFIT_XNN(max_pooling2d_nhwc_f32));
  }
  const auto out = affine(task.outputs[0]);
  if (!out) return nullptr;
  const auto quantized = [&]<class T>(T, const char* name, auto create_function, auto setup) {
    const auto bounds = stored_bounds<T>(activation, *out);
    if (!bounds) return KernelPtr();
    return make_largest_of(task, name, pooling, bounds->low, bounds->high, kActivated,
                           create_function, setup);
  };
  return task.inputs[0].dtype == DType::u8
             ? quantized(U8{}, "max pooling u8", FLEETFIT_XNN(max_pooling2d_nhwc_u8))
             : quantized(S8{}, "max pooling s8", FLEETFIT_XNN(max_pooling2d_nhwc_s8));
}

/// `rest` is what follows the geometry in the arguments.
template <class T, auto create_function, auto setup, class... Rest>
KernelPtr make_average_of(const Task& task, const char* name, const Pooling& pooling,
                          KernelParts::Activation activation, Rest... rest) {
  const auto& [in, w] = pooling;
  return one_operator<T>(
      task, name, activation,
      create(create_function, w.pads_begin.height, w.pads_end.width, w.pads_end.height,
             w.pads_begin.width, w.kernel.height, w.kernel.width, w.strides.height, w.strides.width,
             in.channels, in.channels, in.channels, rest..., 0U),
      setup, in.batch, in.height, in.width);
}

KernelPtr make_average(const Task& task, const Pooling& pooling) {
  if (pooling.window.dilations.height != 1 || pooling.window.dilations.width != 1) return nullptr;
  const auto& activation = task.node.activation;
  if (is_real(task.inputs[0]) && is_real(task.outputs[0])) {
    const auto bounds = bounds_of(activation);
    const auto [low, high] = bounds.value_or(Bounds{});
    return make_average_of<float, FLEETFIT_XNN(average_pooling2d_nhwc_f32)>(
        task, "average pooling f32", pooling, is_included(bounds), low, high);
  }
  const auto in = affine(task.inputs[0]);
  const auto out = affine(task.outputs[0]);
  // The library counts padding in here, unlike with floats.
  if (!in || !out || task.inputs[0].dtype != DType::u8 || task.outputs[0].dtype != DType::u8 ||
      pooling.is_padded()) {
    return nullptr;
  }
  const auto bounds = stored_bounds<U8>(activation, *out);
  if (!bounds) return nullptr;
  return make_average_of<U8, FLEETFIT_XNN(average_pooling2d_nhwc_qu8)>(
      task, "average pooling qu8", pooling, kActivated, static_cast<U8>(in->zero_point), in->scale,
      static_cast<U8>(out->zero_point), out->scale, bounds->low, bounds->high);
}

/// Padding that makes the last window fit: more than given where extents were rounded up, less
/// where the window leaves some out.
Ints padding_end(const graph::Window& w, const Ints& begin, const Ints& in, const Ints& out) {
  Ints end(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const auto needed = (out[i] - 1) * w.strides[i] + reach - in[i] - begin[i];
    end[i] = std::max<std::int64_t>(needed, 0);
  }
  return end;
}

/// The mean over everything between batch and channels.
KernelPtr make_mean_of(const Task& task, std::size_t batch, std::size_t pixels,
                       std::size_t channels) {
  const auto make = [&]<class T>(T, const char* name, KernelParts::Activation activation,
                                 auto create_function, auto setup, auto... arguments) {
    return one_operator<T>(task, name, activation,
                           create(create_function, channels, channels, channels, arguments..., 0U),
                           setup, batch, pixels);
  };
  const auto& activation = task.node.activation;
  if (is_real(task.inputs[0]) && is_real(task.outputs[0])) {
    const auto bounds = bounds_of(activation);
    const auto [low, high] = bounds.value_or(Bounds{});
    return make(float{}, "global average pooling f32", is_included(bounds),
                FLEETFIT_XNN(global_average_pooling_nwc_f32), low, high);
  }
  const auto in = affine(task.inputs[0]);
  const auto out = affine(task.outputs[0]);
  if (!in || !out || task.inputs[0].dtype != task.outputs[0].dtype) return nullptr;
  const auto quantized = [&]<class T>(T type, const char* name, auto create_function, auto setup) {
    const auto bounds = stored_bounds<T>(activation, *out);
    if (!bounds) return KernelPtr();
    return make(type, name, kActivated, create_function, setup, static_cast<T>(in->zero_point),
                in->scale, static_cast<T>(out->zero_point), out->scale, bounds->low, bounds->high);
  };
  return task.inputs[0].dtype == DType::u8
             ? quantized(U8{}, "global average pooling qu8",
                         FLEETFIT_XNN(global_average_pooling_nwc_qu8))
             : quantized(S8{}, "global average pooling qs8",
                         FLEETFIT_XNN(global_average_pooling_nwc_qs8));
}

KernelPtr make_pool(const Task& task, const graph::Pool& pool) {
  const auto in = image(task.inputs[0], pool.layout);
  if (!in || task.outputs.size() > 1) return nullptr;  // with the indices of the largest
  const auto extents = graph::spatial_extents(task.inputs[0].shape, pool.layout);
  const auto pads = graph::resolve_padding(pool.window, extents);
  const auto end = padding_end(pool.window, pads.begin, extents,
                               graph::spatial_extents(task.outputs[0].shape, pool.layout));
  const auto window = window2d(pool.window, pads.begin, end);
  if (!window) return nullptr;
  const Pooling pooling{*in, *window};
  if (pool.kind == graph::PoolKind::max) return make_largest(task, pooling);
  if (pool.count_include_pad && pooling.is_padded()) return nullptr;
  const bool covers_all = !pooling.is_padded() && window->kernel.height == in->height &&
                          window->kernel.width == in->width;
  // Also for signed bytes, which the library has no other average of.
  if (covers_all) return make_mean_of(task, in->batch, in->height * in->width, in->channels);
  return make_average(task, pooling);
}

KernelPtr make_global_pool(const Task& task, const graph::GlobalPool& pool) {
  const auto& shape = task.inputs[0].shape;
  if (pool.layout != graph::Layout::nhwc || shape.size() < 3) return nullptr;
  const auto pixels = graph::elements(graph::Shape(shape.begin() + 1, shape.end() - 1));
  if (pool.kind == graph::PoolKind::average)
    return make_mean_of(task, size(shape[0]), size(pixels), size(shape.back()));
  const auto in = image(task.inputs[0], pool.layout);
  if (!in) return nullptr;
  const Window2d::Side whole{static_cast<std::uint32_t>(in->height),
                             static_cast<std::uint32_t>(in->width)};
  return make_largest(task, {*in, {.kernel = whole, .strides = whole, .dilations = {1, 1}}});
}

KernelPtr make_mean(const Task& task, const graph::Reduce& reduce) {
  const auto& shape = task.inputs[0].shape;
  const auto rank = std::ssize(shape);
  if (reduce.kind != graph::ReduceKind::mean || rank < 3) return nullptr;
  Ints axes = reduce.axes;
  for (auto& axis : axes) axis += axis < 0 ? rank : 0;
  std::ranges::sort(axes);
  Ints between(size(rank - 2));
  std::iota(between.begin(), between.end(), 1);
  if (axes != between) return nullptr;
  const auto pixels = graph::elements(graph::Shape(shape.begin() + 1, shape.end() - 1));
  return make_mean_of(task, size(shape[0]), size(pixels), size(shape.back()));
}

}  // namespace

std::span<const KernelEntry> pooling_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Pool, make_pool>(),
      entry<graph::GlobalPool, make_global_pool>(),
      entry<graph::Reduce, make_mean>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::xnnpack
