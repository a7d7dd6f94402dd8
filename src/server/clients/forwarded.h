#pragma once

#include <span>
#include <string>

#include "fleetfit/server/network.h"
#include "server/http_head.h"

namespace fleetfit::server {

/// The address that asks: `peer`, at the other end of the line, unless it is a trusted proxy. Then
/// it is the last address in X-Forwarded-For, or in Forwarded, that is no trusted proxy; what
/// stands before it may be invented. A proxy that writes one of the two headers passes the other
/// on as somebody has sent it: where they differ, neither is taken.
std::string asking_address(const HttpHead& head, const std::string& peer,
                           std::span<const Network> trusted_proxies);

}  // namespace fleetfit::server
