#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"

namespace fleetfit::core {

/// `ThreadPool::parallel_for` with bodies that can fail: gives the error of the lowest index. All
/// bodies are run, unless `stop` is requested, which is `cancelled`.
inline Status try_each(ThreadPool& pool, std::size_t count,
                       const std::function<Status(std::size_t)>& body, std::stop_token stop = {}) {
  std::vector<Status> outcomes(count);
  FLEETFIT_TRY(
      pool.parallel_for(count, [&](std::size_t i) { outcomes[i] = body(i); }, std::move(stop)));
  for (auto& outcome : outcomes) FLEETFIT_TRY(outcome);
  return {};
}

}  // namespace fleetfit::core
