#include "server/clients/forwarded.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace fleetfit::server {
namespace {

std::string_view without(std::string_view text, std::string_view characters) {
  const auto begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(characters) - begin + 1);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(without(text.substr(0, end), " \t"));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// What all headers of that name list, in their order.
std::vector<std::string_view> listed(const HttpHead& head, std::string_view name) {
  std::vector<std::string_view> all;
  for (const auto& [key, value] : head.headers)
    if (key == name) std::ranges::copy(parts_of(value, ','), std::back_inserter(all));
  return all;
}

/// "for" of an element of Forwarded: for=192.0.2.1;proto=https, For="[2001:db8::1]:4711"
std::string_view for_of(std::string_view element) {
  constexpr std::string_view kName = "for=";
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
  };
  for (const auto pair : parts_of(element, ';'))
    if (pair.size() > kName.size() && std::ranges::equal(pair.substr(0, kName.size()), kName, same))
      return without(pair.substr(kName.size()), "\"");
  return {};
}

/// Without brackets and port.
std::optional<std::string> bare_address(std::string_view text) {
  if (text.starts_with('[')) {
    text = text.substr(1, text.find(']') - 1);
  } else if (std::ranges::count(text, ':') == 1) {
    text = text.substr(0, text.find(':'));
  }
  auto address = plain_address(text);
  if (!address) return std::nullopt;
  return *std::move(address);
}

/// From the last one to the first, as far as trusted proxies have written them.
std::string last_stranger(const std::vector<std::string_view>& chain, const std::string& peer,
                          std::span<const Network> trusted_proxies) {
  auto asking = peer;
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    auto address = bare_address(*at);
    if (!address) break;
    asking = *std::move(address);
    if (!is_in(trusted_proxies, asking)) break;
  }
  return asking;
}

}  // namespace

std::string asking_address(const HttpHead& head, const std::string& peer,
                           std::span<const Network> trusted_proxies) {
  if (!is_in(trusted_proxies, peer)) return peer;
  const auto common = listed(head, "x-forwarded-for");
  auto standard = listed(head, "forwarded");
  std::ranges::transform(standard, standard.begin(), for_of);
  if (standard.empty()) return last_stranger(common, peer, trusted_proxies);
  auto asking = last_stranger(standard, peer, trusted_proxies);
  if (common.empty() || last_stranger(common, peer, trusted_proxies) == asking) return asking;
  return peer;
}

}  // namespace fleetfit::server
