#include "core/text_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/core/text.h"

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
  if (text.size() <= kLongest) return visible_in_line(text);
  auto end = kLongest;
  while (end > 0 && !starts_character(text[end])) --end;
  return visible_in_line(text.substr(0, end)) + "...";
}

}  // namespace fleetfit::core
