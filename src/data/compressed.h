#pragma once

#include <filesystem>
#include <string>

#include "fleetfit/core/result.h"

namespace fleetfit::data {

/// The whole of `file`, or else of `file`.gz, decompressed. `not_found` names `file` if neither is
/// there; broken or absurdly large content is `invalid_input`.
Result<std::string> read_maybe_compressed(const std::filesystem::path& file);

/// The content of a gzip file. `name` stands for the file in messages.
Result<std::string> gunzip(const std::string& compressed, const std::string& name);

}  // namespace fleetfit::data
