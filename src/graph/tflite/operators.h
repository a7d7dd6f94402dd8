#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "graph/tflite/copy_budget.h"
#include "tflite_generated.h"

namespace fleetfit::graph::tflite {

/// Adds the operators of the main subgraph to `graph`, whose first tensors are those of the file.
/// What has no counterpart becomes Unknown. Fails with `invalid_input`, naming the operator, if it
/// contradicts itself or refers to something that is not there.
Status read_operators(const file::Model& file, CopyBudget& budget, Graph& graph);

}  // namespace fleetfit::graph::tflite
