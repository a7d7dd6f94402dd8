#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"

/// Addresses of those that ask.
namespace fleetfit::server {

/// Addresses that begin alike: 10.0.0.0/8, 2001:db8::/32, or a single one.
struct Network {
  std::array<std::uint8_t, 16> bytes = {};  ///< version 4 as ::ffff:a.b.c.d
  std::size_t bits = 0;                     ///< of these 128 that count
};

/// "10.0.0.0/8", "192.168.1.2", "2001:db8::/32", "::1". Fails with `invalid_input`.
Result<Network> parse_network(std::string_view text);

/// Whether the text is an address, and one of the networks holds it.
bool is_in(std::span<const Network> networks, std::string_view address);

/// The address as it is always written; nothing if the text is none.
Result<std::string> plain_address(std::string_view text);

/// Under what name limits count an address: version 4 as it is; version 6 by its first 64 bits, as
/// one machine may have all of the addresses behind them.
std::string limit_key(const std::string& address);

}  // namespace fleetfit::server
