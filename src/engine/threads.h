#pragma once

#include <cstddef>
#include <cstdint>

/// The one pool of threads that oneDNN, XNNPACK and our own kernels share: libgomp's, which oneDNN
/// brings along. Two pools in one process fight for the cores and run many times slower.
namespace fleetfit::engine {

/// How many threads the loops that this thread starts may use from now on, in all libraries.
void use_threads(int threads);

/// Calls `body(begin, end)` on disjoint parts of [0, count), on as many threads as `use_threads`
/// said. A part has at least `grain` elements, so that small loops run at once on this thread.
/// Allocates nothing.
template <class Body>
void parallel(std::int64_t count, std::int64_t grain, const Body& body);

namespace detail {
using PartFunction = void (*)(const void* body, std::int64_t begin, std::int64_t end);
void parallel_parts(std::int64_t count, std::int64_t grain, PartFunction function,
                    const void* body);
}  // namespace detail

template <class Body>
void parallel(std::int64_t count, std::int64_t grain, const Body& body) {
  detail::parallel_parts(
      count, grain,
      [](const void* self, std::int64_t begin, std::int64_t end) {
        (*static_cast<const Body*>(self))(begin, end);
      },
      &body);
}

}  // namespace fleetfit::engine
