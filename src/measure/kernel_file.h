#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"

/// Files of /proc, /sys and cgroups: one value or a short text in each.
namespace fleetfit::measure {

/// The content without white space at its ends. Fails as `core::read_file` does.
Result<std::string> read_setting(const std::filesystem::path& path);

/// The content as a whole number; `invalid_input` if it is none.
Result<std::int64_t> read_number(const std::filesystem::path& path);

/// The same where absence is no error.
std::optional<std::string> find_setting(const std::filesystem::path& path);
std::optional<std::int64_t> find_number(const std::filesystem::path& path);

/// Writes to a file that must exist, in one piece as the kernel wants it. Fails with `not_found`
/// or `io`, saying why the kernel refused.
Status write_setting(const std::filesystem::path& path, std::string_view text);

/// The words of a text, split at white space.
std::vector<std::string> words_of(std::string_view text);

/// The names in a folder, sorted; empty if there is no such folder.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Whole decimal numbers only.
std::optional<std::int64_t> to_number(std::string_view text);

}  // namespace fleetfit::measure
