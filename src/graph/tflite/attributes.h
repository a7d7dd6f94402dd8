#pragma once

#include <map>
#include <string>

#include "fleetfit/graph/operators.h"
#include "tflite_generated.h"

namespace fleetfit::graph::tflite {

/// The options of an operator that has no counterpart in a graph, by their names in the file:
/// numbers and text of a builtin operator, and of a custom one whose options are a FlexBuffer map.
/// For any other custom options "custom_options_bytes" tells their size.
std::map<std::string, Attribute> read_attributes(const file::Operator& source);

}  // namespace fleetfit::graph::tflite
