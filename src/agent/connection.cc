#include <nlohmann/json.hpp>

#include "fleetfit/agent/agent.h"
#include "fleetfit/core/json.h"

namespace fleetfit::agent {

std::string connection_text(const fleet::ClientOptions& options) {
  return core::format_json_line({{"server", options.server},
                                 {"token", options.token},
                                 {"authority", options.authority.string()},
                                 {"device", options.device}});
}

Result<fleet::ClientOptions> parse_connection(std::string_view text) {
  const auto json = core::parse_json(text, "connection");
  if (!json) return tl::unexpected(json.error());
  const core::JsonView view(*json, "connection");
  fleet::ClientOptions options;
  for (const auto& [key, field] : {std::pair{"server", &fleet::ClientOptions::server},
                                   std::pair{"token", &fleet::ClientOptions::token},
                                   std::pair{"device", &fleet::ClientOptions::device}}) {
    auto value = view.text(key);
    if (!value) return tl::unexpected(std::move(value.error()));
    options.*field = *std::move(value);
  }
  const auto authority = view.text("authority");
  if (!authority) return tl::unexpected(authority.error());
  options.authority = *authority;
  return options;
}

}  // namespace fleetfit::agent
