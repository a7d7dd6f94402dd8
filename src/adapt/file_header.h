#pragma once

#include <cstdint>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

namespace fleetfit::adapt {

/// Whether a document says that it is a `format` of a version that this program knows.
Status check_header(const core::JsonView& json, std::string_view format, std::int64_t version);

}  // namespace fleetfit::adapt
