#pragma once

#include <string_view>

#include "fleetfit/core/result.h"
#include "fleetfit/fleet/messages.h"

/// What texts of messages may be, besides names and hashes. Failures say what was expected.
namespace fleetfit::fleet {

inline constexpr double kLongestS = 7 * 24 * 3600.0;

/// "2026-11-16T08:00:00Z", with a fraction of a second or without.
Status check_time(std::string_view time);
/// What an event or a job is called: "switch", "job.finished".
Status check_word(std::string_view word);
/// What names a file and nothing else, whatever folder it is put into.
Status check_file_name(std::string_view name);

/// A request of that kind as it is by default; also names a kind that there is not.
Result<JobRequest> empty_request(std::string_view kind);

}  // namespace fleetfit::fleet
