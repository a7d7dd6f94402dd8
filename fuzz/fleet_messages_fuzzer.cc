#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/fleet/messages.h"

namespace {

using namespace fleetfit;
using namespace fleetfit::fleet;

/// What was read can be written, and is read the same again.
template <class Parse>
void check(const nlohmann::json& json, Parse parse) {
  const core::JsonView view(json, "message");
  const auto read = parse(view);
  if (!read) {
    if (read.error().code != ErrorCode::invalid_input || read.error().message.empty()) std::abort();
    return;
  }
  const nlohmann::json written = to_json(*read);
  const auto again = parse(core::JsonView(written, "written"));
  if (!again || nlohmann::json(to_json(*again)) != written) std::abort();
}

void check_request(const nlohmann::json& json) {
  for (const auto* kind : {"probe", "measure", "profile", "adapt", "run", "deploy"}) {
    check(json, [&](const core::JsonView& view) { return parse_request(kind, view); });
    if (const auto read = parse_request(kind, core::JsonView(json, "request"))) {
      for (const auto& hash : files_of(*read))
        if (!check_hash(hash)) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = core::parse_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!json) return 0;
  check(*json, parse_registration);
  check(*json, parse_heartbeat);
  check(*json, parse_heartbeat_reply);
  check(*json, parse_limits);
  check(*json, parse_assignments);
  check(*json, parse_outcomes);
  check(*json, parse_events);
  check_request(*json);
  return 0;
}
