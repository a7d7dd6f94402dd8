#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::app {

/// How images become the model's input: its size and channels, pixels as numbers from 0 to 1.
/// Fails with `invalid_input`, saying why, if it does not take one image or a batch of them.
Result<data::Preprocessing> image_preprocessing(const graph::Graph& graph);

}  // namespace fleetfit::app
