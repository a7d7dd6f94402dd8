#include "fleetfit/server/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <charconv>

namespace fleetfit::server {
namespace {

bool is_v4(const std::string& host) {
  in_addr v4{};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1;
}

bool is_v6(const std::string& host) {
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  const auto refused = [&](std::string_view why) {
    return fail(ErrorCode::invalid_input, fmt::format("--listen {}: {}", text, why));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused("expected ADDRESS:PORT");
  const auto port_text = text.substr(colon + 1);
  std::string host(text.substr(0, colon));
  std::uint16_t port = 0;
  const auto read = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (port_text.empty() || read.ec != std::errc() || read.ptr != port_text.end())
    return refused("the port is no number from 0 to 65535");
  if (host == "localhost") return Address{"127.0.0.1", port};
  const bool has_brackets = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (has_brackets ? !is_v6(host) : !is_v4(host))
    return refused("expected an address such as 127.0.0.1 or [::1]");
  return Address{host, port};
}

bool is_loopback(const Address& address) {
  in_addr v4{};
  constexpr std::uint32_t kLoopbackNet = 127;
  if (::inet_pton(AF_INET, address.host.c_str(), &v4) == 1)
    return ntohl(v4.s_addr) >> 24 == kLoopbackNet;
  return address.host == "::1";
}

Result<Address> parse_loopback(std::string_view text) {
  auto address = parse_address(text);
  if (address && !is_loopback(*address)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("--listen {}: only addresses of this machine itself, such as "
                            "127.0.0.1, are served",
                            text));
  }
  return address;
}

std::string to_text(const Address& address) {
  return is_v6(address.host) ? fmt::format("[{}]:{}", address.host, address.port)
                             : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace fleetfit::server
