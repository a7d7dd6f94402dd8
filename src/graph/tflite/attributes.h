#pragma once

#include <map>
#include <string>

#include "fleetfit/graph/operators.h"
#include "graph/tflite/copy_budget.h"
#include "tflite_generated.h"

namespace fleetfit::graph::tflite {

/// The options of an operator that has no counterpart in a graph, by their names in the file:
/// numbers and text of a builtin operator, and of a custom one whose options are a FlexBuffer map.
/// For any other custom options "custom_options_bytes" says their size. Long lists and whatever is
/// beyond the budget are left out.
std::map<std::string, Attribute> read_attributes(const file::Operator& source, CopyBudget& budget);

}  // namespace fleetfit::graph::tflite
