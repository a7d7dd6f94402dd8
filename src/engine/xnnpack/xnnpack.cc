#include "engine/libraries.h"

namespace fleetfit::engine {

KernelPtr make_xnnpack_kernel(const Task& /*task*/) { return nullptr; }

std::string xnnpack_identity() { return "xnnpack"; }

}  // namespace fleetfit::engine
