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
  FLEETFIT_ASSIGN(const auto json, core::parse_json(text, "connection"));
  const core::JsonView view(json, "connection");
  fleet::ClientOptions options;
  for (const auto& [key, field] : {std::pair{"server", &fleet::ClientOptions::server},
                                   std::pair{"token", &fleet::ClientOptions::token},
                                   std::pair{"device", &fleet::ClientOptions::device}}) {
    FLEETFIT_ASSIGN(options.*field, view.text(key));
  }
  FLEETFIT_ASSIGN(options.authority, view.text("authority"));
  return options;
}

}  // namespace fleetfit::agent
