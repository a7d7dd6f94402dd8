// A build without oneDNN: it has no way to do anything.
#include "engine/libraries.h"

namespace fleetfit::engine {

std::vector<std::string> onednn_ways(const Task& /*task*/) { return {}; }

KernelPtr make_onednn_kernel(const Task& /*task*/, std::string_view /*way*/) { return nullptr; }

bool onednn_can(const Task& /*task*/) { return false; }

std::string onednn_identity() { return "no onednn"; }

}  // namespace fleetfit::engine
