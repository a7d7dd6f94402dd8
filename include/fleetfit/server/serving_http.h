#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "fleetfit/app/serving.h"
#include "fleetfit/core/result.h"
#include "fleetfit/server/address.h"
#include "fleetfit/server/http_api.h"

/// Serving over HTTP, for programs on the same machine (docs/serving.md).
namespace fleetfit::server {

/// POST /v1/predict and GET /v1/status, for requests that name this machine (`Host`) and come from
/// no page of another one (`Origin`). What is refused is {"error": "why"}.
class ServingApi final : public HttpApi {
 public:
  explicit ServingApi(app::Serving& serving) : serving_(serving) {}

  /// Requests are to name this port; before, any may be named.
  void serve_at(std::uint16_t port) { port_ = port; }

  Admission admit(const ApiRequest& head) override;
  ApiReply answer(const ApiRequest& request) override;
  ApiReply refuse(int status, std::string_view code, std::string_view message) const override;
  Status look_after() override { return {}; }
  Result<std::vector<StreamedEvent>> events_after(std::int64_t id, std::size_t most) override;

 private:
  std::optional<ApiReply> objection(const ApiRequest& request) const;

  app::Serving& serving_;
  std::uint16_t port_ = 0;
};

/// Answers requests until it is stopped. `listening` gets the address once requests can come.
/// Fails with `io` if the address cannot be used.
Status serve_http(app::Serving& serving, const Address& address,
                  const std::function<void(const std::string& address)>& listening,
                  const std::stop_token& stop);

}  // namespace fleetfit::server
