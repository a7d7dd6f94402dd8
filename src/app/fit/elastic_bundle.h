#pragma once

#include <filesystem>

#include "app/fit/fit_folder.h"
#include "app/fit/fit_sources.h"

namespace fleetfit::app {

/// The bundle of a model's fleet: that of the file, or the model made elastic by fleetfit-train. A
/// bundle that was made from the same model, data and plan is in the folder and is taken; work on
/// it that was interrupted goes on. Fails with `cancelled` when stopped.
Result<std::filesystem::path> elastic_bundle(const FitPlace& place, FitFolder& folder);

}  // namespace fleetfit::app
