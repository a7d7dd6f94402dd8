#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/fields.h"
#include "store/sql/sql_connection.h"

/// Records as rows of tables, by their descriptions (core/fields.h): a column for each field that
/// is stored, those of records in records in their place.
namespace fleetfit::store {

/// The columns of a table of records.
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

  /// Without the first ones.
  Columns after(std::size_t count) const;
};

Columns columns_of(const core::Fields& fields);
/// Those that change once a row is there.
Columns changing_columns_of(const core::Fields& fields);

/// Statements with `?` for each value.
std::string insert_into(std::string_view table, const Columns& columns);
/// Inserts a row; one with the same values of the first columns is replaced.
std::string upsert(std::string_view table, const Columns& columns, std::size_t keys);
/// "UPDATE table SET a = ?, b = ? rest"
std::string update(std::string_view table, const Columns& columns, std::string_view rest);

/// Parameters of a statement. Texts are borrowed.
class SqlValues {
 public:
  template <class... Values>
  explicit SqlValues(const Values&... values) : all_{sql_value(values)...} {}

  template <class Value>
  SqlValues& add(const Value& value) {
    all_.push_back(sql_value(value));
    return *this;
  }
  /// The values of a record in the order of its columns, of those that change alone, or after the
  /// first ones.
  template <core::Described Record>
  SqlValues& add_record(const Record& record) {
    add_fields(fields_of(&record), &record, Which::all);
    return *this;
  }
  template <core::Described Record>
  SqlValues& add_changing(const Record& record) {
    add_fields(fields_of(&record), &record, Which::changing);
    return *this;
  }
  template <core::Described Record>
  SqlValues& add_record_after(std::size_t count, const Record& record) {
    auto fields = fields_of(&record);
    fields.all = fields.all.subspan(count);
    add_fields(fields, &record, Which::all);
    return *this;
  }

  template <class Value>
  void replace_last(const Value& value) {
    all_.back() = sql_value(value);
  }

  std::span<const SqlValue> all() const { return all_; }

 private:
  enum class Which { all, changing };
  void add_fields(const core::Fields& fields, const void* record, Which which);
  void add_field(const core::Field& field, const void* record);
  void add_value(const core::FieldType& type, const void* value);
  void add_null(const core::FieldType& type);

  std::vector<SqlValue> all_;
};

/// The next values of a row. Fails with `invalid_input`, naming the record by its first value, on a
/// name that an enum does not have.
Status read_fields(SqlRow& row, const core::Fields& fields, void* record);

template <core::Described Record>
Result<Record> read_row(SqlRow& row) {
  Record record;
  FLEETFIT_TRY(read_fields(row, fields_of(&record), &record));
  return record;
}

template <core::Described Record>
Columns columns_of() {
  return columns_of(fields_of(static_cast<const Record*>(nullptr)));
}
/// "SELECT a, b FROM rest"
std::string select(const Columns& columns, std::string_view from);
template <core::Described Record>
std::string select(std::string_view from) {
  return select(columns_of<Record>(), from);
}
template <core::Described Record>
Columns changing_columns_of() {
  return changing_columns_of(fields_of(static_cast<const Record*>(nullptr)));
}

}  // namespace fleetfit::store
