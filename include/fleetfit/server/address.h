#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"

/// Where a server listens.
namespace fleetfit::server {

struct Address {
  std::string host = {};   ///< "127.0.0.1", "::1", "0.0.0.0"
  std::uint16_t port = 0;  ///< 0: any that is free
};

/// "127.0.0.1:8080", "localhost:8080", "[::1]:8080", "0.0.0.0:8443". Fails with `invalid_input` on
/// another text, names of machines among them.
Result<Address> parse_address(std::string_view text);

/// Whether only programs on this machine reach it.
bool is_loopback(const Address& address);

/// The same, but fails on an address that others could reach as well.
Result<Address> parse_loopback(std::string_view text);

/// "[::1]:8080"
std::string to_text(const Address& address);

}  // namespace fleetfit::server
