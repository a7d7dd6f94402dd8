#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fleetfit::core {

/// Where byte `offset` of the file `name` with the content `text` is, as editors show it:
/// "a.csv:14:3", line and column from 1. Columns count characters of UTF-8; a byte order mark has
/// no width.
std::string text_place(std::string_view name, std::string_view text, std::size_t offset);

/// The text as it may stand in a message of one line: long ones are cut, and what is no readable
/// text is shown as `visible_in_line` does.
std::string excerpt(std::string_view text);

}  // namespace fleetfit::core
