#pragma once

#include "fleetfit/store/store_file.h"

namespace fleetfit::app {

using store::keep_from_others;

}  // namespace fleetfit::app
