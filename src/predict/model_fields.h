#pragma once

#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

/// What the JSON of all models has in common.
namespace fleetfit::predict {

/// A list of finite numbers that has just this length.
Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::string_view key,
                                              std::size_t length);

}  // namespace fleetfit::predict
