#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "fleetfit/app/serving.h"
#include "fleetfit/core/result.h"
#include "fleetfit/server/address.h"

/// Serving over HTTP, for programs on the same machine (docs/serving.md).
namespace fleetfit::server {

struct HttpRequest {
  std::string method = {};
  std::string path = {};
  std::string body = {};
};

struct HttpReply {
  int status = 200;
  std::string body = {};  ///< JSON
};

/// POST /v1/predict and GET /v1/status. Whatever the request, there is a reply.
HttpReply respond(app::Serving& serving, const HttpRequest& request);

/// Answers requests until it is stopped. `listening` is told the address once requests can come.
/// Fails with `io` if the address cannot be used.
Status serve_http(app::Serving& serving, const Address& address,
                  const std::function<void(const std::string& address)>& listening,
                  const std::stop_token& stop);

}  // namespace fleetfit::server
