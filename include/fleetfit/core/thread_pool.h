#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::core {

/// Runs loops on several threads. Work is cut into chunks that depend on the loop's size only,
/// never on the number of workers: a body that writes to its own index or chunk gives the same
/// result on any number of threads. Loops may be started from many threads and from inside a loop's
/// body. The pool must outlive its loops.
class ThreadPool {
 public:
  /// The thread that starts a loop is one of the `workers`: with 1 (or less) everything runs
  /// inline.
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The number of CPUs this process may use, at least 1.
  static int available_cpus();

  int workers() const { return static_cast<int>(threads_.size()) + 1; }

  /// Calls `body(i)` once for each i below `count` and returns when all are done. If bodies throw,
  /// no further ones are started, and the exception of the lowest index is thrown here.
  void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

  /// The same; fails with `cancelled` if `stop` was requested before all were started.
  Status parallel_for(std::size_t count, const std::function<void(std::size_t)>& body,
                      std::stop_token stop);

  /// Calls `body(begin, end)` for the ranges [0, chunk), [chunk, 2 chunk), … of `count`, in the
  /// manner of `parallel_for`. For sums and the like: keep one result per chunk and add them up in
  /// order.
  void parallel_chunks(std::size_t count, std::size_t chunk,
                       const std::function<void(std::size_t begin, std::size_t end)>& body);

 private:
  struct Loop;

  void run(Loop& loop);
  void help(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any work_arrived_;
  std::condition_variable helper_left_;
  std::vector<Loop*> loops_;  // guarded by mutex_; those that may have chunks left
  std::vector<std::jthread> threads_;
};

}  // namespace fleetfit::core
