#pragma once

#include <filesystem>
#include <string>

#include "fleetfit/core/result.h"

/// What a file is that somebody has sent to a fleet's server.
namespace fleetfit::server {

/// Looks into the file as the ending of the name asks for that it was sent with: "onnx", "bundle",
/// "pool", "key" or "data". Fails with `invalid_input` or `unsupported` if it is not what it says.
Result<std::string> kind_of_upload(const std::filesystem::path& file, const std::string& name);

/// The same as a line of JSON, {"kind"} or {"error","code"}: what a process answers that looks into
/// a file for the server.
std::string describe_upload(const std::filesystem::path& file, const std::string& name);

}  // namespace fleetfit::server
