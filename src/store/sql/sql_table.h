#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/fields.h"
#include "store/sql/sql_values.h"

/// Statements on tables of records, with `?` for each value.
namespace fleetfit::store {

/// Columns of a table.
struct Columns {
  std::vector<std::string_view> names = {};

  /// "a, b, c"
  std::string list() const;
  /// The same with other expressions in place of some columns.
  struct Instead {
    std::string_view column = {};
    std::string_view sql = {};
  };
  std::string list(std::initializer_list<Instead> instead) const;

  /// Behind others.
  Columns behind(std::initializer_list<std::string_view> first) const;
  /// Without the first one.
  Columns without_id() const;
};

/// Of a table with a row for each record.
Columns columns_of(const core::Fields& fields);
/// Those that change once a row is there.
Columns changing_columns_of(const core::Fields& fields);
template <core::Described Record>
Columns columns_of() {
  return columns_of(fields_of(static_cast<const Record*>(nullptr)));
}
template <core::Described Record>
Columns changing_columns_of() {
  return changing_columns_of(fields_of(static_cast<const Record*>(nullptr)));
}

/// "SELECT a, b FROM rest"
template <core::Described Record>
std::string select(std::string_view from) {
  return "SELECT " + columns_of<Record>().list() + " FROM " + std::string(from);
}
std::string insert_into(std::string_view table, const Columns& columns);
/// Inserts a row; one with the same values of the first columns is replaced.
std::string upsert(std::string_view table, const Columns& columns, std::size_t keys);
/// "UPDATE table SET a = ?, b = ? rest"
std::string update(std::string_view table, const Columns& columns, std::string_view rest);
/// "a = ? AND b = ?"
std::string equal(const Columns& columns, std::size_t count);

/// A table with a row for each record, known by its first columns.
template <core::Described Record>
struct SqlTable {
  explicit SqlTable(std::string_view table, std::size_t keys = 1)
      : name(table),
        insert(insert_into(table, columns_of<Record>())),
        save(upsert(table, columns_of<Record>(), keys)),
        find(select("WHERE " + equal(columns_of<Record>(), keys))) {}

  /// "SELECT a, b FROM name rest"
  std::string select(std::string_view rest) const {
    return store::select<Record>(name + " " + std::string(rest));
  }

  const std::string name;
  const std::string insert;
  const std::string save;  ///< or replace
  const std::string find;  ///< by the keys
};

/// A query that is put together from what a filter asks for. Texts are borrowed.
struct SqlQuery {
  std::string sql = {};  ///< ends within a condition
  SqlValues values = SqlValues();

  template <class Value>
  void restrict_by(std::string_view condition, const Value& value) {
    sql += " AND ";
    sql += condition;
    values.add(value);
  }
  /// If something is wanted.
  template <class Value>
  void restrict_by(std::string_view condition, const std::optional<Value>& wanted) {
    if (wanted) restrict_by(condition, *wanted);
  }
  void order_by(std::string_view order, std::size_t limit);
};

}  // namespace fleetfit::store
