#include "train/torch/device.h"

#include <ATen/Context.h>

namespace fleetfit::train {

std::string_view to_string(Compute compute) { return compute == Compute::cuda ? "cuda" : "cpu"; }

Status check_available(Compute compute) {
  if (compute == Compute::cpu || at::hasCUDA()) return {};
  return fail(ErrorCode::invalid_input,
              "--compute cuda: there is no CUDA device here, or libtorch was built without CUDA");
}

}  // namespace fleetfit::train
