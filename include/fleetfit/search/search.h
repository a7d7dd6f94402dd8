#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/search/problem.h"
#include "fleetfit/search/strategy.h"

namespace fleetfit::search {

/// What a search has found.
struct Found {
  std::optional<Candidate> best = {};     ///< of those that keep all limits
  std::optional<Candidate> nearest = {};  ///< breaks limits the least; if none keeps them
  std::vector<Candidate> pareto = {};     ///< of those that keep all limits
  std::uint64_t evaluations = 0;          ///< designs that the sources were asked for
  std::uint64_t unknown = 0;              ///< of these, designs that a source knows nothing of
  bool stopped = false;                   ///< before the strategy had come to its end
};

struct RunOptions {
  Scales scales = {};  ///< needed if the problem has weights
  std::stop_token stop = {};
  /// Sees each batch with its numbers, in order; for archives and progress.
  std::function<void(const Outcome&)> observe = {};
};

/// Lets the strategy propose, evaluates on all workers of the pool, reports to it; until it is at
/// its end. The result does not depend on the number of workers. When stopped, gives what was found
/// so far. Fails as the sources do, as `check` does, and with `not_found` if the sources know none
/// of the designs that were proposed.
Result<Found> run_search(const Problem& problem, Strategy& strategy, core::ThreadPool& pool,
                         const RunOptions& options = {});

struct ScaleOptions {
  std::uint64_t seed = 1;
  std::size_t designs = 1000;
};

/// The scales of random designs of the space, or of all if it has fewer; of `listed` designs if
/// there are any.
Result<Scales> measure_scales(const Problem& problem, core::ThreadPool& pool,
                              const ScaleOptions& options = {}, space::DesignBatch listed = {});

}  // namespace fleetfit::search
