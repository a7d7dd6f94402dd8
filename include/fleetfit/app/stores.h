#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/store/copy.h"

/// Stores as a whole.
namespace fleetfit::app {

/// Copies everything from one store to another, which has to be empty. Fails as `open_store` and
/// `store::copy_records` do.
Result<store::CopyCounts> copy_store(std::string_view from, std::string_view to,
                                     core::Progress& progress);

nlohmann::ordered_json to_json(const store::CopyCounts& counts);

}  // namespace fleetfit::app
