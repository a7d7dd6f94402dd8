#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "train/checkpoint.h"

namespace fleetfit::train {

/// Adds the numbers of tensors to a checkpoint.
void keep_numbers(const std::vector<at::Tensor>& tensors, Checkpoint& checkpoint);

/// Copies a checkpoint's numbers into tensors. `invalid_input`, naming the file, if they do not
/// fit.
Status put_numbers(const std::vector<at::Tensor>& tensors, Checkpoint& checkpoint,
                   const std::string& file);

}  // namespace fleetfit::train
