#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "fleetfit/app/models.h"

namespace fleetfit::cli {

/// Extents for dimensions that a model file leaves open; several verbs take them.
struct OpenDimensionFlags {
  std::vector<std::string> dimensions;
  std::int64_t batch = 1;
};

void add_open_dimension_flags(CLI::App& verb, OpenDimensionFlags& flags);

Result<app::ModelOptions> model_options(const OpenDimensionFlags& flags);

}  // namespace fleetfit::cli
