#include "engine/threads.h"

#include <algorithm>

// libgomp is called by its own interface: clang would bring another OpenMP library, and with it a
// second pool of threads.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
int omp_in_parallel(void);
void omp_set_num_threads(int threads);
}

// The thread sanitizer does not see how libgomp's threads wait for each other.
#if defined(__SANITIZE_THREAD__)
#define FLEETFIT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FLEETFIT_TSAN 1
#endif
#endif
#ifdef FLEETFIT_TSAN
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace fleetfit::engine {
namespace {

/// A moment that all threads of a loop agree on. The loop's start and end are two of them: with one
/// for both, a thread that starts late would seem to wait for one that has ended, and the sanitizer
/// would see no race between the two.
struct Moment {
  char address = 0;
};

struct Loop {
  std::int64_t count;
  std::int64_t parts;
  detail::PartFunction function;
  const void* body;
  Moment start = {};
  Moment end = {};
};

void happens_before([[maybe_unused]] Moment& moment) {
#ifdef FLEETFIT_TSAN
  __tsan_release(&moment);
#endif
}

void happens_after([[maybe_unused]] Moment& moment) {
#ifdef FLEETFIT_TSAN
  __tsan_acquire(&moment);
#endif
}

void run_my_parts(void* data) {
  auto& loop = *static_cast<Loop*>(data);
  happens_after(loop.start);
  // Fewer threads than asked for may come: each takes every n-th part.
  const int team = omp_get_num_threads();
  for (std::int64_t part = omp_get_thread_num(); part < loop.parts; part += team) {
    loop.function(loop.body, loop.count * part / loop.parts, loop.count * (part + 1) / loop.parts);
  }
  happens_before(loop.end);
}

}  // namespace

void use_threads(int threads) { omp_set_num_threads(std::max(threads, 1)); }

void detail::parallel_parts(std::int64_t count, std::int64_t grain, PartFunction function,
                            const void* body) {
  if (count <= 0) return;
  const std::int64_t most = omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
  const std::int64_t parts =
      std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, most);
  if (parts == 1) {
    function(body, 0, count);
    return;
  }
  Loop loop{count, parts, function, body};
  happens_before(loop.start);
  // Always the whole team: libgomp ends and restarts threads when the number changes.
  GOMP_parallel(run_my_parts, &loop, static_cast<unsigned>(most), 0);
  happens_after(loop.end);
}

}  // namespace fleetfit::engine
