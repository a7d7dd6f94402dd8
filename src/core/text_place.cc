#include "core/text_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace fleetfit::core {
namespace {

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

}  // namespace

std::string text_place(std::string_view name, std::string_view text, std::size_t offset) {
  if (text.starts_with("\xef\xbb\xbf")) {
    text.remove_prefix(3);
    offset -= std::min<std::size_t>(offset, 3);
  }
  const auto before = text.substr(0, offset);
  const auto line_start = before.rfind('\n') + 1;
  return fmt::format("{}:{}:{}", name, std::ranges::count(before, '\n') + 1,
                     std::ranges::count_if(before.substr(line_start), starts_character) + 1);
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown(text.substr(0, kLongest));
  std::ranges::replace_if(
      shown, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  if (text.size() > kLongest) {
    while (!shown.empty() && !starts_character(shown.back())) shown.pop_back();
    if (!shown.empty() && static_cast<unsigned char>(shown.back()) > 0x7f) shown.pop_back();
    shown += "...";
  }
  return shown;
}

}  // namespace fleetfit::core
