#pragma once

#include <cstddef>

/// What XNNPACK is handed as its pool of threads: it only passes the pointer on, to functions that
/// are ours. It holds no thread; the loops run on the pool of threads.h.
struct pthreadpool {
  std::size_t threads = 1;
};

namespace fleetfit::engine::xnnpack {

/// Whether XNNPACK's calls arrive here rather than at libpthreadpool, which would take a pool of
/// ours for one of its own.
bool pool_is_ours();

}  // namespace fleetfit::engine::xnnpack
