#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fleetfit::cli {
namespace {

/// Characters of UTF-8 text, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, TextTable::Align align) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return align == TextTable::Align::left ? text + space : space + text;
}

}  // namespace

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    auto width = width_of(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      line += (c > 0 ? "  " : "") + padded(cell(c), widths[c], columns_[c].align);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line([&](std::size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) add_line([&](std::size_t c) { return row[c]; });
  return text;
}

std::string with_prefix(double value, std::string_view unit) {
  constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const int decimals = prefix == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const auto suffix = fmt::format("{}{}", kPrefixes[prefix], unit);
  return fmt::format("{:.{}f}{}{}", value, decimals, suffix.empty() ? "" : " ", suffix);
}

}  // namespace fleetfit::cli
