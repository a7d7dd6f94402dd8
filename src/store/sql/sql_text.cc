#include "store/sql/sql_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace fleetfit::store {
namespace {

std::vector<std::string_view> split_columns(std::string_view columns) {
  constexpr std::string_view kBetween = ", ";
  std::vector<std::string_view> names;
  for (;;) {
    const auto end = columns.find(kBetween);
    names.push_back(columns.substr(0, end));
    if (end == std::string_view::npos) return names;
    columns.remove_prefix(end + kBetween.size());
  }
}

}  // namespace

std::string placeholders(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += i == 0 ? "?" : ", ?";
  return text;
}

std::size_t count_columns(std::string_view columns) {
  return static_cast<std::size_t>(std::ranges::count(columns, ',')) + 1;
}

std::string insert_into(std::string_view table, std::string_view columns) {
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, columns,
                     placeholders(count_columns(columns)));
}

std::string upsert(std::string_view table, std::string_view keys, std::string_view others) {
  std::string changes;
  for (const auto column : split_columns(others))
    changes += fmt::format("{}{} = excluded.{}", changes.empty() ? "" : ", ", column, column);
  return fmt::format("INSERT INTO {} ({}, {}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}", table,
                     keys, others, placeholders(count_columns(keys) + count_columns(others)), keys,
                     changes);
}

}  // namespace fleetfit::store
