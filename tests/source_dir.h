#pragma once

#include <string>

namespace fleetfit {

/// The folder that this checkout's README is in.
std::string source_dir();

}  // namespace fleetfit
