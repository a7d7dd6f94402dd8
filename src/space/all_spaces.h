#pragma once

#include <memory>

#include "fleetfit/space/space.h"

namespace fleetfit::space {

std::unique_ptr<const Space> make_icpe();
std::unique_ptr<const Space> make_nasbench201();

}  // namespace fleetfit::space
