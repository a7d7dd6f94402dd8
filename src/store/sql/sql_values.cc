#include "store/sql/sql_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace fleetfit::store {
namespace {

using core::Field;
using core::FieldType;
using Shape = FieldType::Shape;

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

void skip_each(SqlRow& row, const core::Fields& fields) {
  for (const auto& field : fields.all) {
    if (field.type == nullptr || !field.is_stored) continue;
    const auto columns = std::max<std::size_t>(1, field.type->fixed_size);
    for (std::size_t i = 0; i < columns; ++i) row.skip();
  }
}

// An optional record is there if its first column is.
Status read_inlined(SqlRow& row, const Field& field, void* record) {
  void* member = core::member_of(field, record);
  const auto fields = core::inlined_fields(field);
  if (field.type->shape != Shape::optional) return read_each(row, fields, member);
  field.type->clear(member);
  if (!row.is_null()) return read_each(row, fields, field.type->add(member));
  skip_each(row, fields);
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

bool is_spread(const Field& field) {
  const auto* type = field.type->shape == Shape::optional ? field.type->inner : field.type;
  return type->shape == Shape::record;
}

SqlValue sql_value(std::size_t limit) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return sql_value(std::in_range<std::int64_t>(limit) ? static_cast<std::int64_t>(limit) : kMost);
}

void SqlValues::add_fields(const SqlPart& part) {
  constexpr std::size_t kKeys = 2;  // that some statements have behind a record
  all_.reserve(all_.size() + part.fields.all.size() + kKeys);
  for (const auto& field : part.fields.all) {
    if (field.type == nullptr || !field.is_stored) continue;
    if (part.without_constants && field.is_constant) continue;
    if (!is_spread(field)) {
      add_field(field, part.record);
    } else if (const void* inlined = core::inlined_record(field, part.record)) {
      add_fields({core::inlined_fields(field), inlined, part.without_constants});
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
