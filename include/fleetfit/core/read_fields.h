#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/time.h"

/// Reads records by their descriptions from documents of one format, for the sources that do so.
namespace fleetfit::core {

/// `Format::View` is a value in such a document, with what JsonView has. What formats do and say in
/// their own ways are functions of `Format`: how they read a text, a choice and a list of values,
/// and a field that has functions of its own, and what is wrong with a number, with a field that is
/// missing and with one that nobody knows.
template <class Format>
class FieldReader {
 public:
  using View = typename Format::View;

  static Status read(const View& view, const Fields& fields, void* record) {
    if (fields.others == OtherKeys::refused)
      FLEETFIT_TRY(Format::allow_only(view, keys_of(fields)));
    FLEETFIT_TRY(read_fields(view, fields, record));
    if (fields.rule == nullptr) return {};
    return or_error(view, fields.rule(record));
  }

  static Status read_value(const View& view, const FieldType& type, const Field& field,
                           void* value) {
    using Shape = FieldType::Shape;
    switch (type.shape) {
      case Shape::text:
        return Format::read_text(view, field, *static_cast<std::string*>(value));
      case Shape::boolean:
        return view.as_boolean().map([&](bool is) { type.set_whole(value, is ? 1 : 0); });
      case Shape::integer:
        return read_integer(view, type, field, value);
      case Shape::number:
        return read_number(view, type, field, value);
      case Shape::choice:
        return Format::read_choice(view, type.names()).map([&](std::int64_t whole) {
          type.set_whole(value, whole);
        });
      case Shape::time:
        return read_time(view, type, value);
      case Shape::record:
        return read(view, type.fields(), value);
      case Shape::list:
        return Format::read_list(view, type, field, value);
      case Shape::optional:
        type.clear(value);
        return read_value(view, *type.inner, field, type.add(value));
      case Shape::own:
        break;
    }
    return Format::read_own(view, type, value);
  }

 private:
  static Status or_error(const View& view, const Status& status) {
    if (!status) return view.error(status.error().message);
    return {};
  }

  static Status read_integer(const View& view, const FieldType& type, const Field& field,
                             void* value) {
    const auto allowed = field.range.integers();
    FLEETFIT_ASSIGN(const auto whole,
                    view.as_integer({.min = std::max(allowed.min, type.limits.min),
                                     .max = std::min(allowed.max, type.limits.max)}));
    type.set_whole(value, whole);
    return {};
  }

  static Status read_number(const View& view, const FieldType& type, const Field& field,
                            void* value) {
    FLEETFIT_ASSIGN(const auto number, view.as_number());
    if (!field.range.contains(number)) return view.error(Format::out_of_range(number, field.range));
    type.set_number(value, number);
    return {};
  }

  static Status read_time(const View& view, const FieldType& type, void* value) {
    FLEETFIT_ASSIGN(const auto text, view.as_text());
    const auto time = parse_time(text);
    if (!time) return view.error(time.error().message);
    type.set_whole(value, time->time_since_epoch().count());
    return {};
  }

  static Status read_inlined(const View& view, const Field& field, void* record) {
    void* member = member_of(field, record);
    const Fields fields = inlined_fields(field);
    if (field.type->shape != FieldType::Shape::optional) return read_fields(view, fields, member);
    field.type->clear(member);
    for (const auto key : keys_of(fields)) {
      FLEETFIT_ASSIGN(const auto found, view.find(key));
      if (found) return read_fields(view, fields, field.type->add(member));
    }
    return {};
  }

  static Status read_field(const View& view, const Field& field, void* record) {
    if (field.is_inlined) return read_inlined(view, field, record);
    if (!Format::is_read(field)) return {};
    FLEETFIT_ASSIGN(const auto found, view.find(field.name));
    if (!found && field.is_optional) return {};
    if (!found) return view.error(Format::missing(field.name));
    if (field.parse != nullptr) {
      FLEETFIT_ASSIGN(const auto text, found->as_text());
      return or_error(*found, field.parse(text, record));
    }
    if (field.type == nullptr) return Format::read_by_function(*found, field, record);
    return read_value(*found, *field.type, field, member_of(field, record));
  }

  static Status read_fields(const View& view, const Fields& fields, void* record) {
    for (const auto& field : fields.all) FLEETFIT_TRY(read_field(view, field, record));
    return {};
  }
};

}  // namespace fleetfit::core
