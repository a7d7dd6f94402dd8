#include "store/sql/sql_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fleetfit::store {
namespace {

// An interval has two columns, "low, high".
void add_names(std::string_view text, Columns& columns) {
  constexpr std::string_view kBetween = ", ";
  for (auto end = text.find(kBetween); end != std::string_view::npos; end = text.find(kBetween)) {
    columns.names.push_back(text.substr(0, end));
    text.remove_prefix(end + kBetween.size());
  }
  columns.names.push_back(text);
}

void add_columns(const core::Fields& fields, bool (*wanted)(const core::Field&), Columns& columns) {
  for (const auto& field : fields.all) {
    if (field.type == nullptr || !field.is_stored || !wanted(field)) continue;
    if (is_spread(field)) {
      add_columns(core::inlined_fields(field), wanted, columns);
    } else {
      add_names(field.column_name(), columns);
    }
  }
}

// Each column in a pattern with {0} for its name.
std::string each(std::string_view pattern, std::span<const std::string_view> columns,
                 std::string_view between = ", ") {
  std::vector<std::string> texts;
  for (const auto column : columns) texts.push_back(fmt::format(fmt::runtime(pattern), column));
  return fmt::format("{}", fmt::join(texts, between));
}

}  // namespace

std::string Columns::list() const { return each("{}", names); }

std::string Columns::list(std::initializer_list<Instead> instead) const {
  auto expressions = names;
  for (const auto& [column, sql] : instead)
    std::ranges::replace(expressions, std::string_view(column), sql);
  return each("{}", expressions);
}

Columns Columns::behind(std::initializer_list<std::string_view> first) const {
  Columns all{.names = first};
  all.names.insert(all.names.end(), names.begin(), names.end());
  return all;
}

Columns Columns::without_id() const { return {.names = {names.begin() + 1, names.end()}}; }

Columns columns_of(const core::Fields& fields) {
  Columns columns;
  add_columns(fields, [](const core::Field&) { return true; }, columns);
  return columns;
}

Columns changing_columns_of(const core::Fields& fields) {
  Columns columns;
  add_columns(fields, [](const core::Field& field) { return !field.is_constant; }, columns);
  return columns;
}

std::string insert_into(std::string_view table, const Columns& columns) {
  const std::vector<std::string_view> values(columns.names.size(), "?");
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, columns.list(),
                     fmt::join(values, ", "));
}

std::string upsert(std::string_view table, const Columns& columns, std::size_t keys) {
  const std::span all(columns.names);
  return fmt::format("{} ON CONFLICT ({}) DO UPDATE SET {}", insert_into(table, columns),
                     each("{}", all.first(keys)), each("{0} = excluded.{0}", all.subspan(keys)));
}

std::string update(std::string_view table, const Columns& columns, std::string_view rest) {
  return fmt::format("UPDATE {} SET {} {}", table, each("{} = ?", columns.names), rest);
}

std::string equal(const Columns& columns, std::size_t count) {
  return each("{} = ?", std::span(columns.names).first(count), " AND ");
}

void SqlQuery::order_by(std::string_view order, std::size_t limit) {
  sql += fmt::format(" ORDER BY {} LIMIT ?", order);
  values.add(limit);
}

}  // namespace fleetfit::store
