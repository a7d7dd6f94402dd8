#pragma once

#include <string>
#include <string_view>

namespace fleetfit::core {

/// The SHA-256 digest (FIPS 180-4) of `bytes` as 64 small hexadecimal digits. Names contents; not
/// meant for passwords.
std::string sha256_hex(std::string_view bytes);

}  // namespace fleetfit::core
