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

std::string_view trimmed(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

void TextTable::add_columns(std::string_view columns) {
  for (std::size_t begin = 0; begin <= columns.size();) {
    const auto end = std::min(columns.find('|', begin), columns.size());
    const auto column = columns.substr(begin, end - begin);
    const auto format = std::min(column.find('{'), column.size());
    add_column(std::string(trimmed(column.substr(0, format))),
               std::string(trimmed(column.substr(format))));
    begin = end + 1;
  }
}

void TextTable::add_column(std::string title, std::string format) {
  columns_.push_back({.title = std::move(title), .format = std::move(format)});
}

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
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& text_of_cell = cell(c);
      const std::string space(widths[c] - width_of(text_of_cell), ' ');
      line += c > 0 ? "  " : "";
      line += columns_[c].format.empty() ? text_of_cell + space : space + text_of_cell;
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_)
    add_line([&](std::size_t c) -> const std::string& { return row[c]; });
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
