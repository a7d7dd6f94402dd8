#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/time.h"
#include "fleetfit/server/fleet_api.h"
#include "fleetfit/store/fleet_records.h"
#include "fleetfit/store/records.h"

/// Records as the API writes them.
namespace fleetfit::server {

using Json = nlohmann::ordered_json;

using core::parse_time;
using core::time_text;
Json time_or_null(const std::optional<store::Time>& time);

/// The JSON that a record holds as text; an empty object if it is none.
Json embedded(std::string_view text);

ApiReply json_reply(const Json& body, int status = 200);
/// {"items","next"}
ApiReply page_reply(Json items, Json next);

Json to_json(const store::TokenRecord& token);
Json to_json(const store::EventRecord& event);
Json to_json(const store::FileRecord& file);
Json to_json(const store::AuditRecord& entry);
/// Without its result, which may be large.
Json job_json(const store::JobRecord& job);
Json whole_job_json(const store::JobRecord& job);
/// That the job is in the state it is in.
store::EventRecord job_event(const store::JobRecord& job, store::Time now);
/// That a device is "online", "offline", "added" or "removed".
store::EventRecord device_event(std::string_view device, std::string_view what, store::Time now);

/// The body, which has to be an object.
Result<nlohmann::json> parse_body(const ApiRequest& request);

}  // namespace fleetfit::server
