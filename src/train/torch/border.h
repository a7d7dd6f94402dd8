#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <string>
#include <type_traits>

#include "fleetfit/core/result.h"
#include "fleetfit/train/images.h"

/// The border to libtorch: its devices and threads, and what it throws.
namespace fleetfit::train {

inline at::Device device_of(Compute compute) {
  return compute == Compute::cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

/// How many threads torch and its matrix library use for one operator.
void use_threads(int count);

/// The first line of what was thrown, without torch's trace of its own functions.
std::string message_of(const std::exception& thrown);

/// Runs what uses torch, which may return a Result itself; what torch throws
/// becomes an error (`internal`, as input was checked before).
template <class Work>
auto guarded(Work&& work) {
  using Outcome = std::invoke_result_t<Work>;
  constexpr bool kIsResult = requires(Outcome outcome) { outcome.error(); };
  using Returned = std::conditional_t<kIsResult, Outcome, Result<Outcome>>;
  try {
    if constexpr (std::is_void_v<Outcome>) {
      work();
      return Returned();
    } else {
      return Returned(work());
    }
  } catch (const std::exception& thrown) {
    return Returned(fail(ErrorCode::internal, message_of(thrown)));
  }
}

}  // namespace fleetfit::train
