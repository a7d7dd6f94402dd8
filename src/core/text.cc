#include "fleetfit/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace fleetfit::core {
namespace {

constexpr std::string_view kLeftOut = "…";

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// The character that a text begins with.
struct Character {
  std::size_t bytes = 0;  ///< 0: what is there is no UTF-8
  std::uint32_t code = 0;
};

Character first_character(std::string_view text) {
  struct Form {
    unsigned char mask;
    unsigned char lead;
    std::uint32_t least;
  };
  static constexpr std::array kForms = {Form{0x80, 0, 0}, Form{0xe0, 0xc0, 0x80},
                                        Form{0xf0, 0xe0, 0x800}, Form{0xf8, 0xf0, 0x10000}};
  const auto lead = static_cast<unsigned char>(text.front());
  for (std::size_t bytes = 1; bytes <= kForms.size(); ++bytes) {
    const auto& form = kForms[bytes - 1];
    if ((lead & form.mask) != form.lead) continue;
    if (text.size() < bytes) return {};
    std::uint32_t code = lead & static_cast<unsigned char>(~form.mask);
    for (std::size_t i = 1; i < bytes; ++i) {
      if (!is_inside_character(text[i])) return {};
      code = code << 6U | (static_cast<unsigned char>(text[i]) & 0x3fU);
    }
    const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < form.least || code > 0x10ffff || is_surrogate) return {};
    return {bytes, code};
  }
  return {};
}

/// What a terminal or a page would obey instead of showing it.
bool is_command(std::uint32_t code) {
  const bool controls = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  const bool ends_line = code == 0x2028 || code == 0x2029;
  return controls || turns || ends_line;
}

/// A control character with what is shown for it.
using Name = std::pair<char, std::string_view>;

std::string shown(std::string_view text, std::span<const Name> named) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, code] = first_character(text);
    const auto part = text.substr(0, std::max<std::size_t>(bytes, 1));
    const auto name = std::ranges::find(named, part.front(), &Name::first);
    if (name != named.end()) {
      result += name->second;
    } else if (bytes == 0 || is_command(code)) {
      for (const char c : part) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += part;
    }
    text.remove_prefix(part.size());
  }
  return result;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !is_inside_character(c); }));
}

/// Where character number `index` begins.
std::size_t place_of_character(std::string_view text, std::size_t index) {
  std::size_t place = 0;
  while (place < text.size() && (is_inside_character(text[place]) || index-- > 0)) ++place;
  return place;
}

/// The text with so many characters, one of which says that some are left out behind the first
/// `head`.
std::string without_middle(std::string_view text, std::size_t head, std::size_t most) {
  const auto all = count_characters(text);
  if (all <= most) return std::string(text);
  const auto tail = most - 1 - head;
  return fmt::format("{}{}{}", text.substr(0, place_of_character(text, head)), kLeftOut,
                     text.substr(place_of_character(text, all - tail)));
}

/// The longest text between two quotes of one kind.
std::string_view longest_quoted(std::string_view message) {
  std::string_view longest;
  for (const char quote : {'\'', '"'}) {
    for (auto open = message.find(quote); open != std::string_view::npos;) {
      const auto close = message.find(quote, open + 1);
      if (close == std::string_view::npos) break;
      const auto inside = message.substr(open + 1, close - open - 1);
      if (inside.size() > longest.size()) longest = inside;
      open = close;
    }
  }
  return longest;
}

}  // namespace

std::string visible(std::string_view text) {
  static constexpr std::array<Name, 2> kKept = {{{'\n', "\n"}, {'\t', "\t"}}};
  return shown(text, kKept);
}

std::string visible_in_line(std::string_view text) {
  static constexpr std::array<Name, 3> kNamed = {{{'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}}};
  return shown(text, kNamed);
}

std::string shortened(std::string_view message, std::size_t most) {
  constexpr std::size_t kLeastQuoted = 40;
  const auto all = count_characters(message);
  if (all <= most) return std::string(message);
  const auto quoted = longest_quoted(message);
  const auto within = count_characters(quoted);
  if (most < kLeastQuoted || within + most < all + kLeastQuoted)
    return without_middle(message, most / 2, most);
  const auto left = within + most - all;
  const auto place = static_cast<std::size_t>(quoted.data() - message.data());
  return fmt::format("{}{}{}", message.substr(0, place), without_middle(quoted, left / 2, left),
                     message.substr(place + quoted.size()));
}

}  // namespace fleetfit::core
