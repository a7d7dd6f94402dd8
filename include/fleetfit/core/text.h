#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Text from files, flags and the network, as it may stand in messages, on pages and on a terminal.
namespace fleetfit::core {

/// The text as valid UTF-8 without control characters but line ends and tabs: bytes that are no
/// UTF-8, other control characters and marks that turn the direction of writing become "\xNN".
std::string visible(std::string_view text);

/// The same for what is quoted within a line: a line end becomes "\n", a tab "\t".
std::string visible_in_line(std::string_view text);

/// The message with at most `most` characters. What is left out is in the middle of the longest
/// quoted text, and if that does not do, behind the first half of the message.
std::string shortened(std::string_view message, std::size_t most);

}  // namespace fleetfit::core
