#pragma once

#include <ATen/core/Tensor.h>

#include "fleetfit/train/images.h"

namespace fleetfit::train {

inline at::Device device_of(Compute compute) {
  return compute == Compute::cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

}  // namespace fleetfit::train
