#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fleetfit::core {

/// Bytes as text (RFC 4648, with padding), for numbers in bulk inside of JSON.
std::string encode_base64(std::string_view bytes);

/// Nothing if the text is not what `encode_base64` gives for any bytes.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace fleetfit::core
