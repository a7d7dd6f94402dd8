#pragma once

#include <string_view>

namespace fleetfit::core {

/// The version of this build, as stated in the top CMakeLists.txt.
std::string_view version();

}  // namespace fleetfit::core
