#pragma once

#include <string>

#include "fleetfit/data/texts.h"

namespace fleetfit::data {

/// Adds the rows of a CSV file to texts whose classes are known. `name` stands for the file in
/// messages.
Status append_rows(std::string content, const std::string& name, Texts& texts);

}  // namespace fleetfit::data
