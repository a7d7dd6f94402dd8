#include "fleetfit/core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>

namespace fleetfit::core {
namespace {

// Enough chunks to keep many workers busy, few enough that claiming one costs nothing.
std::size_t chunk_for(std::size_t count) { return std::max<std::size_t>(1, count / 256); }

}  // namespace

struct ThreadPool::Loop {
  std::size_t count;
  std::size_t chunk;
  const std::function<void(std::size_t, std::size_t)>& body;
  std::stop_token stop = {};

  std::atomic<std::size_t> next_chunk = 0;
  std::atomic<bool> abandoned = false;
  std::atomic<bool> cancelled = false;
  int helpers = 0;  // guarded by the pool's mutex

  std::mutex failure_mutex = {};
  std::size_t failed_chunk = 0;
  std::exception_ptr failure = {};

  std::size_t chunks() const { return count / chunk + (count % chunk != 0 ? 1 : 0); }
  bool has_work() const { return !abandoned && next_chunk < chunks(); }

  // Chunks are claimed in order, so every chunk before a failed one has been started too, and the
  // failure of the lowest is known when all have ended.
  void run_chunks() {
    while (!abandoned) {
      const std::size_t claimed = next_chunk++;
      if (claimed >= chunks()) return;
      if (stop.stop_requested()) {
        cancelled = true;
        abandoned = true;
        return;
      }
      const std::size_t begin = claimed * chunk;
      try {
        body(begin, begin + std::min(chunk, count - begin));
      } catch (...) {
        note_failure(claimed, std::current_exception());
      }
    }
  }

  void note_failure(std::size_t at, std::exception_ptr problem) {
    abandoned = true;
    const std::scoped_lock lock(failure_mutex);
    if (failure && failed_chunk < at) return;
    failed_chunk = at;
    failure = std::move(problem);
  }
};

ThreadPool::ThreadPool(int workers) {
  for (int i = 1; i < workers; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { help(stop); });
  }
}

ThreadPool::~ThreadPool() {
  for (auto& thread : threads_) thread.request_stop();
  threads_.clear();
}

int ThreadPool::available_cpus() {
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void ThreadPool::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  // Nobody can request a stop through an empty token.
  (void)parallel_for(count, body, std::stop_token());
}

Status ThreadPool::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body,
                                std::stop_token stop) {
  const std::function<void(std::size_t, std::size_t)> each = [&](std::size_t begin,
                                                                 std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) body(i);
  };
  Loop loop{.count = count, .chunk = chunk_for(count), .body = each, .stop = std::move(stop)};
  run(loop);
  if (loop.cancelled) return fail(ErrorCode::cancelled, "the work was cancelled");
  return {};
}

void ThreadPool::parallel_chunks(std::size_t count, std::size_t chunk,
                                 const std::function<void(std::size_t, std::size_t)>& body) {
  assert(chunk > 0);
  Loop loop{.count = count, .chunk = chunk, .body = body};
  run(loop);
}

// The caller works too and waits only for chunks that other threads have begun, so loops inside
// loops always make progress.
void ThreadPool::run(Loop& loop) {
  const bool shared = !threads_.empty() && loop.chunks() > 1;
  if (shared) {
    {
      const std::scoped_lock lock(mutex_);
      loops_.push_back(&loop);
    }
    work_arrived_.notify_all();
  }
  loop.run_chunks();
  if (shared) {
    std::unique_lock lock(mutex_);
    std::erase(loops_, &loop);
    helper_left_.wait(lock, [&] { return loop.helpers == 0; });
  }
  if (loop.failure) std::rethrow_exception(loop.failure);
}

void ThreadPool::help(const std::stop_token& stop) {
  const auto has_work = [](const Loop* loop) { return loop->has_work(); };
  std::unique_lock lock(mutex_);
  for (;;) {
    auto found = loops_.end();
    // The youngest first: older loops may be waiting for it.
    const auto find_work = [&] {
      const auto youngest = std::find_if(loops_.rbegin(), loops_.rend(), has_work);
      found = youngest == loops_.rend() ? loops_.end() : std::prev(youngest.base());
      return found != loops_.end();
    };
    if (!work_arrived_.wait(lock, stop, find_work)) return;
    Loop& loop = **found;
    ++loop.helpers;
    lock.unlock();
    loop.run_chunks();
    lock.lock();
    if (--loop.helpers == 0) helper_left_.notify_all();
  }
}

}  // namespace fleetfit::core
