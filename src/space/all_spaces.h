#pragma once

#include <memory>

#include "fleetfit/space/space.h"

namespace fleetfit::space {

std::unique_ptr<const Space> make_fbnet();
std::unique_ptr<const Space> make_icpe();
std::unique_ptr<const Space> make_mobilenetv2();
std::unique_ptr<const Space> make_mobilenetv3();
std::unique_ptr<const Space> make_nasbench201();
std::unique_ptr<const Space> make_ofa_mbv3();
std::unique_ptr<const Space> make_proxylessnas();

}  // namespace fleetfit::space
