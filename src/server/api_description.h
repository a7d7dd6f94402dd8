#pragma once

#include <string_view>

namespace fleetfit::server {

/// docs/formats/api.json.
std::string_view api_description();

}  // namespace fleetfit::server
