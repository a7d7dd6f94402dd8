#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/graph/tensor.h"

namespace fleetfit::train {

/// Whether a tensor has something for each of several pixels: N x channels x height x width.
bool is_map(const graph::Tensor& output);

/// Checks that a network gives classes of what the data has labels for: of images, or of pixels as
/// many as the input has. `invalid_input` says which of them it is.
Status check_label_form(const graph::Tensor& input, const graph::Tensor& output,
                        const data::Dataset& data);

}  // namespace fleetfit::train
