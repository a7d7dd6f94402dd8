#include "store/sql/sql_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "store/sql/sql_text.h"

namespace fleetfit::store {
namespace {

using core::Field;
using core::FieldType;
using Shape = FieldType::Shape;

/// Whether its fields have columns among those of its record.
bool is_spread(const Field& field) {
  const auto* type = field.type->shape == Shape::optional ? field.type->inner : field.type;
  return type->shape == Shape::record;
}

void add_columns(const core::Fields& fields, bool (*wanted)(const Field&), Columns& columns) {
  for (const auto& field : fields.all) {
    if (field.type == nullptr || !field.is_stored || !wanted(field)) continue;
    if (is_spread(field)) {
      add_columns(core::inlined_fields(field), wanted, columns);
    } else {
      columns.names.push_back(field.column_name());
    }
  }
}

Columns columns_that(const core::Fields& fields, bool (*wanted)(const Field&)) {
  Columns columns;
  add_columns(fields, wanted, columns);
  return columns;
}

Status read_value(SqlRow& row, const FieldType& type, void* value) {
  switch (type.shape) {
    case Shape::text:
      *static_cast<std::string*>(value) = row.text();
      break;
    case Shape::boolean:
      type.set_whole(value, row.boolean() ? 1 : 0);
      break;
    case Shape::integer:
    case Shape::time:
      type.set_whole(value, row.integer());
      break;
    case Shape::number:
      type.set_number(value, row.number());
      break;
    case Shape::choice: {
      FLEETFIT_ASSIGN(const auto whole, type.names().parse(row.text()));
      type.set_whole(value, whole);
      break;
    }
    case Shape::optional:
      type.clear(value);
      if (!row.is_null()) return read_value(row, *type.inner, type.add(value));
      row.skip();
      break;
    case Shape::list:
      for (std::size_t i = 0; i < type.fixed_size; ++i)
        FLEETFIT_TRY(read_value(row, *type.inner, core::new_element(type, value, i)));
      break;
    case Shape::record:
    case Shape::own:
      break;
  }
  return {};
}

Status read_each(SqlRow& row, const core::Fields& fields, void* record);

// An optional record is there if its first column is.
Status read_inlined(SqlRow& row, const Field& field, void* record) {
  void* member = core::member_of(field, record);
  const auto fields = core::inlined_fields(field);
  if (field.type->shape != Shape::optional) return read_each(row, fields, member);
  field.type->clear(member);
  if (!row.is_null()) return read_each(row, fields, field.type->add(member));
  for (std::size_t i = 0; i < count_columns(columns_of(fields).list()); ++i) row.skip();
  return {};
}

Status read_each(SqlRow& row, const core::Fields& fields, void* record) {
  for (const auto& field : fields.all) {
    if (field.type == nullptr || !field.is_stored) continue;
    FLEETFIT_TRY(is_spread(field) ? read_inlined(row, field, record)
                                  : read_value(row, *field.type, core::member_of(field, record)));
  }
  return {};
}

/// "trial 3"
std::string place_of(const core::Fields& fields, const void* record) {
  const auto& first = fields.all.front();
  const void* value = first.member(record);
  if (first.type->shape == Shape::text)
    return fmt::format("{} {}", fields.what, *static_cast<const std::string*>(value));
  return fmt::format("{} {}", fields.what, first.type->whole(value));
}

}  // namespace

std::string Columns::list() const { return fmt::format("{}", fmt::join(names, ", ")); }

std::string Columns::list(std::initializer_list<Instead> instead) const {
  auto expressions = names;
  for (const auto& [column, sql] : instead)
    std::ranges::replace(expressions, std::string_view(column), sql);
  return Columns{.names = std::move(expressions)}.list();
}

Columns Columns::after(std::size_t count) const {
  return {.names = {names.begin() + static_cast<std::ptrdiff_t>(count), names.end()}};
}

Columns columns_of(const core::Fields& fields) {
  return columns_that(fields, [](const Field&) { return true; });
}

Columns changing_columns_of(const core::Fields& fields) {
  return columns_that(fields, [](const Field& field) { return !field.is_constant; });
}

std::string select(const Columns& columns, std::string_view from) {
  return fmt::format("SELECT {} FROM {}", columns.list(), from);
}

std::string insert_into(std::string_view table, const Columns& columns) {
  return insert_into(table, columns.list());
}

std::string upsert(std::string_view table, const Columns& columns, std::size_t keys) {
  const Columns first{
      .names = {columns.names.begin(), columns.names.begin() + static_cast<std::ptrdiff_t>(keys)}};
  return upsert(table, first.list(), columns.after(keys).list());
}

std::string update(std::string_view table, const Columns& columns, std::string_view rest) {
  return fmt::format("UPDATE {} SET {} = ? {}", table, fmt::join(columns.names, " = ?, "), rest);
}

void SqlValues::add_fields(const core::Fields& fields, const void* record, Which which) {
  constexpr std::size_t kKeys = 2;  // that some statements have behind a record
  all_.reserve(all_.size() + fields.all.size() + kKeys);
  for (const auto& field : fields.all) {
    if (field.type == nullptr || !field.is_stored) continue;
    if (which == Which::changing && field.is_constant) continue;
    if (!is_spread(field)) {
      add_field(field, record);
    } else if (const void* inlined = core::inlined_record(field, record)) {
      add_fields(core::inlined_fields(field), inlined, which);
    } else {
      for (const auto& one : core::inlined_fields(field).all)
        if (one.is_stored) add_null(*one.type);
    }
  }
}

void SqlValues::add_field(const Field& field, const void* record) {
  const bool is_null_by_default = field.if_default == Field::IfDefault::null;
  if (is_null_by_default && field.is_default != nullptr && field.is_default(record)) {
    add_null(*field.type);
  } else {
    add_value(*field.type, field.member(record));
  }
}

void SqlValues::add_value(const FieldType& type, const void* value) {
  switch (type.shape) {
    case Shape::text:
      all_.push_back(sql_value(*static_cast<const std::string*>(value)));
      break;
    case Shape::boolean:
      all_.push_back(sql_value(type.whole(value) != 0));
      break;
    case Shape::integer:
    case Shape::time:
      all_.push_back(sql_value(type.whole(value)));
      break;
    case Shape::number:
      all_.push_back(sql_value(type.number(value)));
      break;
    case Shape::choice:
      all_.push_back(sql_value(type.names().of(type.whole(value))));
      break;
    case Shape::optional:
      if (type.size(value) > 0) return add_value(*type.inner, type.at(value, 0));
      add_null(*type.inner);
      break;
    case Shape::list:
      for (std::size_t i = 0; i < type.fixed_size; ++i) add_value(*type.inner, type.at(value, i));
      break;
    case Shape::record:
    case Shape::own:
      break;
  }
}

// PostgreSQL wants to know the type of what is not there, too.
void SqlValues::add_null(const FieldType& type) {
  SqlValue null{.value = std::int64_t{0}, .is_null = true};
  switch (type.shape) {
    case Shape::text:
    case Shape::choice:
      null.value = std::string_view();
      break;
    case Shape::boolean:
      null.value = false;
      break;
    case Shape::number:
      null.value = 0.0;
      break;
    case Shape::optional:
      return add_null(*type.inner);
    case Shape::list:
      for (std::size_t i = 0; i < type.fixed_size; ++i) add_null(*type.inner);
      return;
    case Shape::integer:
    case Shape::time:
    case Shape::record:
    case Shape::own:
      break;
  }
  all_.push_back(null);
}

Status read_fields(SqlRow& row, const core::Fields& fields, void* record) {
  auto done = read_each(row, fields, record);
  if (!done) return core::within(place_of(fields, record), done.error());
  return done;
}

}  // namespace fleetfit::store
