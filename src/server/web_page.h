#pragma once

#include "fleetfit/server/fleet_api.h"

namespace fleetfit::server {

/// A file of the web page. Paths without a dot are views of the page itself.
ApiReply answer_page(const ApiRequest& request);

}  // namespace fleetfit::server
