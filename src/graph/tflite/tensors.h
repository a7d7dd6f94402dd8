#pragma once

#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/import.h"
#include "graph/tflite/copy_budget.h"
#include "tflite_generated.h"

namespace fleetfit::graph::tflite {

/// A file's element type; `unknown` for those that a graph has not. 4-bit numbers are kept as int8.
DType dtype_of(file::TensorType type);

/// Reads the tensors of the main subgraph, and which of them are its inputs, into `model`: ids are
/// the file's. Constants are copied. Dimensions that the file leaves open get an extent by
/// `options`. Fails with `invalid_input`, naming the tensor, if something in it does not fit, and
/// with `unsupported` if its data is stored in a way that nothing here reads.
Status read_tensors(const file::Model& file, const ImportOptions& options, CopyBudget& budget,
                    ImportedModel& model);

}  // namespace fleetfit::graph::tflite
