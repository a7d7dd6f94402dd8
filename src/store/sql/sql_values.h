#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/time.h"

/// Values on their way into statements and out of rows. Records have theirs by their descriptions
/// (core/fields.h): one for each field that is stored, those of inlined records in their place.
namespace fleetfit::store {

/// Whether the field is a record, whose fields have columns among those of its own record.
bool is_spread(const core::Field& field);

/// A parameter. Its type is known even if it is null; texts are borrowed.
struct SqlValue {
  std::variant<std::int64_t, double, bool, std::string_view> value;
  bool is_null = false;
};

inline SqlValue sql_value(std::int64_t value) { return {.value = value}; }
inline SqlValue sql_value(double value) { return {.value = value}; }
inline SqlValue sql_value(bool value) { return {.value = value}; }
inline SqlValue sql_value(std::string_view value) { return {.value = value}; }
inline SqlValue sql_value(const char* value) { return {.value = std::string_view(value)}; }
inline SqlValue sql_value(const std::string& value) { return {.value = std::string_view(value)}; }
inline SqlValue sql_value(core::Time value) { return {.value = value.time_since_epoch().count()}; }
/// How many rows there may be at most.
SqlValue sql_value(std::size_t limit);
template <core::Named Enum>
SqlValue sql_value(Enum value) {
  return sql_value(core::to_string(value));
}
template <class Value>
SqlValue sql_value(const std::optional<Value>& value) {
  if (value) return sql_value(*value);
  static const Value kNothing{};
  auto null = sql_value(kNothing);
  null.is_null = true;
  return null;
}

/// Some values of a record.
struct SqlPart {
  core::Fields fields = {};
  const void* record = nullptr;
  bool without_constants = false;
};
/// Those behind the first one, its id.
template <core::Described Record>
SqlPart without_id(const Record& record) {
  auto fields = fields_of(&record);
  fields.all = fields.all.subspan(1);
  return {.fields = fields, .record = &record};
}
/// Those that change once a row is there.
template <core::Described Record>
SqlPart changing(const Record& record) {
  return {.fields = fields_of(&record), .record = &record, .without_constants = true};
}

/// Parameters of a statement: values, records, parts of records. Texts are borrowed.
class SqlValues {
 public:
  template <class... Values>
  explicit SqlValues(const Values&... values) {
    (add(values), ...);
  }

  template <class Value>
  void add(const Value& value) {
    if constexpr (core::Described<Value>) {
      add_fields({.fields = fields_of(&value), .record = &value});
    } else {
      all_.push_back(sql_value(value));
    }
  }
  void add(const SqlPart& part) { add_fields(part); }
  void add(const SqlValues& others) {
    all_.insert(all_.end(), others.all_.begin(), others.all_.end());
  }
  template <class Value>
  void replace_last(const Value& value) {
    all_.back() = sql_value(value);
  }

  std::span<const SqlValue> all() const { return all_; }

 private:
  void add_fields(const SqlPart& part);
  void add_field(const core::Field& field, const void* record);
  void add_value(const core::FieldType& type, const void* value);
  void add_null(const core::FieldType& type);

  std::vector<SqlValue> all_;
};

/// The values of a row, read from left to right. What is null is read as 0, false or empty.
class SqlRow {
 public:
  virtual ~SqlRow() = default;

  virtual std::string text() = 0;
  virtual std::int64_t integer() = 0;
  virtual double number() = 0;
  virtual bool boolean() = 0;

  /// Whether the value that comes next is null.
  virtual bool is_null() const = 0;
  /// Goes on to the one behind it.
  virtual void skip() = 0;
};

/// The next values of a row. Fails with `invalid_input`, naming the record by its first value, on a
/// name that an enum does not have.
Status read_fields(SqlRow& row, const core::Fields& fields, void* record);

/// A row that is a record, a text or a number.
template <class Value>
Status read_row(SqlRow& row, Value& into) {
  if constexpr (core::Described<Value>) {
    return read_fields(row, fields_of(&into), &into);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    into = row.text();
  } else {
    into = row.integer();
  }
  return {};
}

}  // namespace fleetfit::store
