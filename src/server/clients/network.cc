#include "fleetfit/server/network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace fleetfit::server {
namespace {

using AddressBytes = std::array<std::uint8_t, 16>;

constexpr std::size_t kAllBits = 128;
constexpr std::size_t kV4At = 12;  // where the bytes of version 4 stand among the sixteen
constexpr AddressBytes kV4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_v4(const AddressBytes& bytes) {
  return std::equal(bytes.begin(), bytes.begin() + kV4At, kV4Prefix.begin());
}

std::optional<AddressBytes> address_bytes(std::string_view text) {
  const std::string address(text);
  AddressBytes bytes = kV4Prefix;
  if (::inet_pton(AF_INET, address.c_str(), bytes.data() + kV4At) == 1) return bytes;
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

bool same_bits(const AddressBytes& a, const AddressBytes& b, std::size_t bits) {
  const std::size_t whole = bits / 8;
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin()))
    return false;
  if (bits % 8 == 0) return true;
  const auto differing = static_cast<unsigned>(a[whole] ^ b[whole]);
  return differing >> (8 - bits % 8) == 0;
}

std::string address_text(const AddressBytes& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_v4(bytes)) {
    ::inet_ntop(AF_INET, bytes.data() + kV4At, text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  }
  return text.data();
}

}  // namespace

Result<Network> parse_network(std::string_view text) {
  const auto refused = [&] {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: expected an address or a network such as 10.0.0.0/8", text));
  };
  const auto slash = std::min(text.find('/'), text.size());
  const auto bytes = address_bytes(text.substr(0, slash));
  if (!bytes) return refused();
  Network network{.bytes = *bytes, .bits = kAllBits};
  if (slash == text.size()) return network;
  const auto digits = text.substr(slash + 1);
  const std::size_t most = is_v4(*bytes) ? 32 : kAllBits;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), network.bits);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || network.bits > most)
    return refused();
  network.bits += kAllBits - most;
  return network;
}

bool is_in(std::span<const Network> networks, std::string_view address) {
  if (networks.empty()) return false;
  const auto bytes = address_bytes(address);
  return bytes && std::ranges::any_of(networks, [&](const Network& network) {
           return same_bits(network.bytes, *bytes, network.bits);
         });
}

Result<std::string> plain_address(std::string_view text) {
  const auto bytes = address_bytes(text);
  if (!bytes) return fail(ErrorCode::invalid_input, fmt::format("{}: is no address", text));
  return address_text(*bytes);
}

std::string limit_key(const std::string& address) {
  auto bytes = address_bytes(address);
  if (!bytes) return address;
  if (is_v4(*bytes)) return address_text(*bytes);
  constexpr std::ptrdiff_t kOfOne = 8;
  std::fill(bytes->begin() + kOfOne, bytes->end(), std::uint8_t{0});
  return address_text(*bytes) + "/64";
}

}  // namespace fleetfit::server
