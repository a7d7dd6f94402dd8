#pragma once

#include <memory>

#include "fleetfit/space/space.h"

namespace fleetfit::space {

std::unique_ptr<const Space> make_icpe();

}  // namespace fleetfit::space
