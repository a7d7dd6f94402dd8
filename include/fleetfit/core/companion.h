#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/process.h"
#include "fleetfit/core/result.h"

/// Programs that are installed beside the running one and do a part of its work, in the manner of
/// git's helpers: the user sees one tool. A companion that is not there is `not_found`:
/// "fleetfit-train is not installed beside fleetfit".
namespace fleetfit::core {

/// The path of the running program, which may have been replaced meanwhile.
Result<std::filesystem::path> running_program();

/// The companion's path.
Result<std::filesystem::path> find_companion(std::string_view name);

/// The running program becomes the companion: same process, same streams, signals come through.
/// Returns only if that fails. What is not written yet of the standard output is written first;
/// destructors do not run.
Error become_companion(std::string_view name, const std::vector<std::string>& arguments);

struct CompanionOptions {
  /// Passed on once, as SIGTERM; the companion then ends in its own time and may still succeed.
  std::stop_token stop = {};
  std::size_t max_output_bytes = std::size_t{64} << 20;  ///< of stdout; more is `device_failed`
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to ours
};

struct CompanionOutput {
  ExitStatus status = {};
  std::string output = {};  ///< its stdout
};

/// Runs the companion as a step of a longer work and waits for it. Its stderr is ours, so that
/// progress and errors are seen as if they were our own.
Result<CompanionOutput> run_companion(std::string_view name,
                                      const std::vector<std::string>& arguments,
                                      const CompanionOptions& options = {});

}  // namespace fleetfit::core
