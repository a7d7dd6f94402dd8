#pragma once

#include <map>
#include <string>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/import.h"
#include "graph/tflite/conversion.h"
#include "tflite_generated.h"

/// The parts of a file, each read by a source of its own.
namespace fleetfit::graph::tflite {

/// A file's element type; `unknown` for those that a graph has not. 4-bit numbers are kept as int8.
DType dtype_of(file::TensorType type);

/// Reads the tensors of the main subgraph, and which of them are its inputs, into `model`: ids are
/// the file's. Constants are copied. Dimensions that the file leaves open get an extent by
/// `options`. Fails with `invalid_input`, naming the tensor, if something in it does not fit, and
/// with `unsupported` if its data is stored in a way that nothing here reads.
Status read_tensors(const file::Model& file, const ImportOptions& options, CopyBudget& budget,
                    ImportedModel& model);

/// Adds the operators of the main subgraph to `graph`, whose first tensors are those of the file.
/// What has no counterpart becomes Unknown. Fails with `invalid_input`, naming the operator, if it
/// contradicts itself or refers to something that is not there.
Status read_operators(const file::Model& file, CopyBudget& budget, Graph& graph);

/// The options of an operator that has no counterpart in a graph, by their names in the file:
/// numbers and text of a builtin operator, and of a custom one whose options are a FlexBuffer map.
/// For any other custom options "custom_options_bytes" says their size. Long lists and whatever is
/// beyond the budget are left out.
std::map<std::string, Attribute> read_attributes(const file::Operator& source, CopyBudget& budget);

}  // namespace fleetfit::graph::tflite
