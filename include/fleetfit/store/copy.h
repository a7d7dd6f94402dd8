#pragma once

#include <cstdint>
#include <functional>

#include "fleetfit/core/result.h"
#include "fleetfit/store/store.h"

namespace fleetfit::store {

/// What was copied.
struct CopyCounts {
  std::int64_t devices = 0;
  std::int64_t models = 0;
  std::int64_t measurements = 0;
  std::int64_t kernel_choices = 0;
  std::int64_t studies = 0;
  std::int64_t trials = 0;
  std::int64_t inferences = 0;
  std::int64_t tokens = 0;
  std::int64_t agents = 0;
  std::int64_t jobs = 0;
  std::int64_t events = 0;
  std::int64_t files = 0;
  std::int64_t audit = 0;

  bool operator==(const CopyCounts&) const = default;
};

/// Copies all records into an empty store, in batches; `on_batch` may be empty. Measurements and
/// changes of trials are numbered again, in the same order; what a fleet has keeps its ids. Studies
/// and fleets that somebody works on meanwhile may be copied in part. Fails with `invalid_input` if
/// `to` is not empty; what was copied before another failure stays there.
Result<CopyCounts> copy_records(Store& from, Store& to,
                                const std::function<void(const CopyCounts&)>& on_batch = {});

}  // namespace fleetfit::store
