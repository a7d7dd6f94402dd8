#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/measure/runtime.h"

/// How the values of a runtime look in JSON (docs/formats/runtime.md), for both sides.
namespace fleetfit::measure {

inline constexpr std::int64_t kProtocol = 1;
inline constexpr std::int64_t kMostRuns = 100'000;
inline constexpr std::int64_t kMostThreads = 4096;

nlohmann::json info_reply(const RuntimeInfo& info);
/// Fails if the protocol is another one.
Result<RuntimeInfo> read_info(const core::JsonView& reply);

nlohmann::json load_request(const std::filesystem::path& model, const LoadOptions& options);
Result<LoadOptions> read_load_options(const core::JsonView& request);

nlohmann::json run_reply(const RunTimes& times);
/// Fails unless there is one sane time for each of `runs`.
Result<RunTimes> read_run_times(const core::JsonView& reply, int runs);

nlohmann::json error_reply(const Error& error);
/// The error that a reply holds. A code that we do not know counts as `device_failed`. Fails if the
/// reply does not tell it properly.
Result<Error> read_error(const core::JsonView& reply);

/// Text of another program on one line and without control characters; the last `most` bytes of it.
std::string last_words(std::string_view text, std::size_t most);

}  // namespace fleetfit::measure
