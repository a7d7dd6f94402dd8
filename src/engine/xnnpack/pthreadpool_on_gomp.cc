// The functions of libpthreadpool that XNNPACK calls, on the one pool of threads that this program
// has. The definitions of a program come before those of its libraries, so XNNPACK finds these.
#include <dlfcn.h>
#include <pthreadpool.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "engine/threads.h"
#include "engine/xnnpack/xnnpack.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

/// While it lives, this thread takes denormal numbers for zeros, which are many times faster.
class WithoutDenormals {
 public:
  explicit WithoutDenormals(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
#if defined(__x86_64__)
    constexpr unsigned kFlushAndZero = 0x8040;
    before_ = _mm_getcsr();
    _mm_setcsr(before_ | kFlushAndZero);
#elif defined(__aarch64__)
    constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, %0" : : "r"(before_ | kFlush));
#endif
  }
  ~WithoutDenormals() {
    if (!wanted_) return;
#if defined(__x86_64__)
    _mm_setcsr(before_);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before_));
#endif
  }
  WithoutDenormals(const WithoutDenormals&) = delete;
  WithoutDenormals& operator=(const WithoutDenormals&) = delete;

 private:
  bool wanted_;
#if defined(__x86_64__)
  unsigned before_ = 0;
#elif defined(__aarch64__)
  std::uint64_t before_ = 0;
#endif
};

/// A loop over several dimensions, the last `Tiled` of them in steps of more than one.
template <std::size_t Dims, std::size_t Tiled>
struct Grid {
  std::array<std::size_t, Dims> extents;
  std::array<std::size_t, Tiled> tiles;

  std::size_t step(std::size_t dim) const {
    return dim + Tiled < Dims ? 1 : tiles[dim + Tiled - Dims];
  }
  std::size_t steps(std::size_t dim) const { return (extents[dim] + step(dim) - 1) / step(dim); }
  std::size_t cells() const {
    std::size_t count = 1;
    for (std::size_t dim = 0; dim < Dims; ++dim) count *= steps(dim);
    return count;
  }

  /// Where a cell begins.
  std::array<std::size_t, Dims> origin(std::size_t cell) const {
    std::array<std::size_t, Dims> at{};
    for (std::size_t dim = Dims; dim-- > 0;) {
      at[dim] = cell % steps(dim) * step(dim);
      cell /= steps(dim);
    }
    return at;
  }
  /// The origin of the next cell.
  void advance(std::array<std::size_t, Dims>& at) const {
    for (std::size_t dim = Dims; dim-- > 0;) {
      at[dim] += step(dim);
      if (at[dim] < extents[dim]) return;
      at[dim] = 0;
    }
  }
};

template <std::size_t Dims, std::size_t Tiled, class Task>
void call(const Grid<Dims, Tiled>& grid, Task task, void* context,
          const std::array<std::size_t, Dims>& at) {
  [&]<std::size_t... I, std::size_t... T>(std::index_sequence<I...>, std::index_sequence<T...>) {
    task(context, at[I]...,
         std::min(grid.tiles[T], grid.extents[Dims - Tiled + T] - at[Dims - Tiled + T])...);
  }(std::make_index_sequence<Dims>(), std::make_index_sequence<Tiled>());
}

template <std::size_t Dims, std::size_t Tiled, class Task>
void run(pthreadpool_t pool, const Grid<Dims, Tiled>& grid, Task task, void* context,
         std::uint32_t flags) {
  const auto cells = static_cast<std::int64_t>(grid.cells());
  const auto run_cells = [&](std::int64_t begin, std::int64_t end) {
    const WithoutDenormals mode((flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0);
    auto at = grid.origin(static_cast<std::size_t>(begin));
    for (std::int64_t cell = begin; cell < end; ++cell) {
      call(grid, task, context, at);
      grid.advance(at);
    }
  };
  if (cells == 0) return;
  if (pool == nullptr || pool->threads <= 1) {
    run_cells(0, cells);
  } else {
    fleetfit::engine::parallel(cells, 1, run_cells);
  }
}

}  // namespace

#define FLEETFIT_EXPORT __attribute__((visibility("default"), used))

extern "C" {

FLEETFIT_EXPORT size_t pthreadpool_get_threads_count(pthreadpool_t pool) {
  return pool == nullptr ? 1 : pool->threads;
}

FLEETFIT_EXPORT void pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task,
                                                void* context, size_t i, uint32_t flags) {
  run(pool, Grid<1, 0>{{i}, {}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_1d_tile_1d(pthreadpool_t pool,
                                                        pthreadpool_task_1d_tile_1d_t task,
                                                        void* context, size_t i, size_t tile_i,
                                                        uint32_t flags) {
  run(pool, Grid<1, 1>{{i}, {tile_i}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task,
                                                void* context, size_t i, size_t j, uint32_t flags) {
  run(pool, Grid<2, 0>{{i, j}, {}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_2d_tile_1d(pthreadpool_t pool,
                                                        pthreadpool_task_2d_tile_1d_t task,
                                                        void* context, size_t i, size_t j,
                                                        size_t tile_j, uint32_t flags) {
  run(pool, Grid<2, 1>{{i, j}, {tile_j}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_2d_tile_2d(pthreadpool_t pool,
                                                        pthreadpool_task_2d_tile_2d_t task,
                                                        void* context, size_t i, size_t j,
                                                        size_t tile_i, size_t tile_j,
                                                        uint32_t flags) {
  run(pool, Grid<2, 2>{{i, j}, {tile_i, tile_j}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_3d(pthreadpool_t pool, pthreadpool_task_3d_t task,
                                                void* context, size_t i, size_t j, size_t k,
                                                uint32_t flags) {
  run(pool, Grid<3, 0>{{i, j, k}, {}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_3d_tile_2d(pthreadpool_t pool,
                                                        pthreadpool_task_3d_tile_2d_t task,
                                                        void* context, size_t i, size_t j, size_t k,
                                                        size_t tile_j, size_t tile_k,
                                                        uint32_t flags) {
  run(pool, Grid<3, 2>{{i, j, k}, {tile_j, tile_k}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_4d(pthreadpool_t pool, pthreadpool_task_4d_t task,
                                                void* context, size_t i, size_t j, size_t k,
                                                size_t l, uint32_t flags) {
  run(pool, Grid<4, 0>{{i, j, k, l}, {}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_4d_tile_2d(pthreadpool_t pool,
                                                        pthreadpool_task_4d_tile_2d_t task,
                                                        void* context, size_t i, size_t j, size_t k,
                                                        size_t l, size_t tile_k, size_t tile_l,
                                                        uint32_t flags) {
  run(pool, Grid<4, 2>{{i, j, k, l}, {tile_k, tile_l}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_5d(pthreadpool_t pool, pthreadpool_task_5d_t task,
                                                void* context, size_t i, size_t j, size_t k,
                                                size_t l, size_t m, uint32_t flags) {
  run(pool, Grid<5, 0>{{i, j, k, l, m}, {}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_5d_tile_2d(pthreadpool_t pool,
                                                        pthreadpool_task_5d_tile_2d_t task,
                                                        void* context, size_t i, size_t j, size_t k,
                                                        size_t l, size_t m, size_t tile_l,
                                                        size_t tile_m, uint32_t flags) {
  run(pool, Grid<5, 2>{{i, j, k, l, m}, {tile_l, tile_m}}, task, context, flags);
}

FLEETFIT_EXPORT void pthreadpool_parallelize_6d_tile_2d(pthreadpool_t pool,
                                                        pthreadpool_task_6d_tile_2d_t task,
                                                        void* context, size_t i, size_t j, size_t k,
                                                        size_t l, size_t m, size_t n, size_t tile_m,
                                                        size_t tile_n, uint32_t flags) {
  run(pool, Grid<6, 2>{{i, j, k, l, m, n}, {tile_m, tile_n}}, task, context, flags);
}

}  // extern "C"

namespace fleetfit::engine::xnnpack {

bool pool_is_ours() {
  // The name as the dynamic linker resolves it for everybody, against the definition above.
  return dlsym(RTLD_DEFAULT, "pthreadpool_get_threads_count") ==
         reinterpret_cast<void*>(&pthreadpool_get_threads_count);
}

}  // namespace fleetfit::engine::xnnpack
