#include "fleetfit/server/web_files.h"

namespace fleetfit::server {

std::span<const WebFile> web_files() { return {}; }

}  // namespace fleetfit::server
