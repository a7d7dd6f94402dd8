// Maxima and averages under a sliding window.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/own/own.h"
#include "engine/own/window.h"

namespace fleetfit::engine::own {
namespace {

using graph::Layout;
using graph::PoolKind;

struct Pooling {
  PoolKind kind = PoolKind::max;
  bool counts_padding = false;
  ImageShape in;
  ImageShape out;
  Sliding window;

  /// What the window covers of the image at an output position.
  struct Cover {
    Spatial at{};
    std::array<Range, 3> taps{};
    std::int64_t count = 0;  ///< that an average is divided by
  };
  Cover cover(std::int64_t pixel) const;

  /// Calls `visit` with the pixel under each tap.
  template <class Visit>
  void for_each_pixel(const Cover& cover, const Visit& visit) const {
    for (auto i = cover.taps[0].begin; i < cover.taps[0].end; ++i) {
      const auto z = window.position(0, cover.at[0], i);
      for (auto j = cover.taps[1].begin; j < cover.taps[1].end; ++j) {
        const auto y = window.position(1, cover.at[1], j);
        for (auto k = cover.taps[2].begin; k < cover.taps[2].end; ++k) {
          visit((z * in.extents[1] + y) * in.extents[2] + window.position(2, cover.at[2], k));
        }
      }
    }
  }
};

Pooling::Cover Pooling::cover(std::int64_t pixel) const {
  Cover cover;
  for (std::size_t axis = 3; axis-- > 0;) {
    cover.at[axis] = pixel % out.extents[axis];
    pixel /= out.extents[axis];
  }
  std::int64_t inside = 1;
  std::int64_t padded = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t extent = in.extents[axis];
    cover.taps[axis] = window.taps(axis, cover.at[axis], 0, extent);
    const Range all =
        window.taps(axis, cover.at[axis], -window.pads[axis], extent + window.pads_end[axis]);
    inside *= cover.taps[axis].end - cover.taps[axis].begin;
    padded *= all.end - all.begin;
  }
  cover.count = counts_padding ? padded : inside;
  return cover;
}

/// All channels of one output pixel, which lie together.
void pool_channels(const Pooling& p, const float* image, float* out, const Pooling::Cover& cover) {
  const std::int64_t channels = p.in.channels;
  const bool is_max = p.kind == PoolKind::max;
  std::fill_n(out, channels, is_max ? -std::numeric_limits<float>::infinity() : 0.0F);
  p.for_each_pixel(cover, [&](std::int64_t pixel) {
    const float* x = image + pixel * channels;
    is_max ? max_rows(x, out, channels) : add_scaled_row(x, 1.0F, out, channels);
  });
  if (!is_max && cover.count > 0) {
    scale_row(out, 1.0F / static_cast<float>(cover.count), out, channels);
  }
}

float pool_one(const Pooling& p, const float* image, const Pooling::Cover& cover) {
  if (p.kind == PoolKind::max) {
    float best = -std::numeric_limits<float>::infinity();
    p.for_each_pixel(cover, [&](std::int64_t pixel) { best = std::max(best, image[pixel]); });
    return best;
  }
  float sum = 0;
  p.for_each_pixel(cover, [&](std::int64_t pixel) { sum += image[pixel]; });
  return cover.count > 0 ? sum / static_cast<float>(cover.count) : 0.0F;
}

KernelPtr make_pool(const Task& task, const graph::Pool& op) {
  if (!all_real(task) || task.outputs.size() != 1) return nullptr;
  const auto in = image_shape(task.inputs[0].shape, op.layout);
  const auto out = image_shape(task.outputs[0].shape, op.layout);
  if (!in || !out) return nullptr;
  const auto padding =
      graph::resolve_padding(op.window, graph::spatial_extents(task.inputs[0].shape, op.layout));
  const Pooling p{op.kind, op.count_include_pad, *in, *out, sliding(op.window, padding)};
  const std::int64_t cost = p.window.taps();
  if (op.layout == Layout::nhwc) {
    return function_kernel(task, "pool", [=](const Memory& memory) {
      const std::int64_t pixels = p.out.pixels();
      parallel_each(p.in.batch * pixels, cost * p.in.channels, [&](std::int64_t i) {
        const float* image = memory.in<float>() + i / pixels * p.in.pixels() * p.in.channels;
        pool_channels(p, image, memory.out<float>() + i * p.in.channels, p.cover(i % pixels));
      });
    });
  }
  return function_kernel(task, "pool", [=](const Memory& memory) {
    const std::int64_t pixels = p.out.pixels();
    parallel_each(p.in.batch * p.in.channels * pixels, cost * 2, [&](std::int64_t i) {
      memory.out<float>()[i] =
          pool_one(p, memory.in<float>() + i / pixels * p.in.pixels(), p.cover(i % pixels));
    });
  });
}

}  // namespace

std::span<const OwnKernels> pooling_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Pool, make_pool>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
