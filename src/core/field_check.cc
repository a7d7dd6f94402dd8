#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"

namespace fleetfit::core {
namespace {

using Shape = FieldType::Shape;

// Bytes of the UTF-8 character that `text` begins with; 0 if it is none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_high = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_high ? 0 : size;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = character_bytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

class Checker {
 public:
  explicit Checker(std::string_view what) : what_(what) {}

  Status fields(const Fields& fields, const void* record) const {
    for (const auto& one : fields.all) FLEETFIT_TRY(field(one, record));
    return fields.rule == nullptr ? Status{} : within(what_, fields.rule(record));
  }

  Status text(const Field& field, std::string_view text) const {
    if (field.holds_json()) return json(field, text);
    if (text.find('\0') != std::string_view::npos)
      return refused(field, "contains a NUL character");
    if (!is_utf8(text)) return refused(field, "is not UTF-8");
    if (const auto problem = problem_with(field, text)) return refused(field, *problem);
    return {};
  }

  Status number(const Field& field, double value) const {
    if (!std::isfinite(value))
      return refused(field, fmt::format("is {}, which is no finite number", value));
    if (field.range.contains(value)) return {};
    return refused(field, fmt::format("is {}, {}", value, field.range.problem()));
  }

 private:
  Status field(const Field& field, const void* record) const {
    if (field.type == nullptr) return {};
    if (!field.is_inlined) return value(*field.type, field, field.member(record));
    const void* inlined = inlined_record(field, record);
    return inlined == nullptr ? Status{} : fields(inlined_fields(field), inlined);
  }

  Status value(const FieldType& type, const Field& field, const void* value) const {
    switch (type.shape) {
      case Shape::text:
        return text(field, *static_cast<const std::string*>(value));
      case Shape::integer:
        return whole(field, type.whole(value));
      case Shape::number:
        return number(field, type.number(value));
      case Shape::optional:
        return type.size(value) == 0 ? Status{}
                                     : this->value(*type.inner, field, type.at(value, 0));
      case Shape::list:
        return list(type, field, value);
      case Shape::record:
        return fields(type.fields(), value);
      case Shape::boolean:
      case Shape::choice:
      case Shape::time:
      case Shape::own:
        break;
    }
    return {};
  }

  Status list(const FieldType& type, const Field& field, const void* list) const {
    const bool is_of_records = type.inner->shape == Shape::record;
    for (std::size_t i = 0; i < type.size(list); ++i) {
      const void* element = type.at(list, i);
      if (is_of_records) {
        const auto place = fmt::format("{}: {}[{}]", what_, field.column_name(), i);
        FLEETFIT_TRY(Checker(place).fields(type.inner->fields(), element));
      } else {
        FLEETFIT_TRY(value(*type.inner, field, element));
      }
    }
    return {};
  }

  Status json(const Field& field, std::string_view text) const {
    FLEETFIT_ASSIGN(const auto json, within(what_, parse_json(text, field.column_name())));
    const bool wants_object = field.text == Field::Text::json_object;
    if (wants_object && !json.is_object()) return refused(field, "is not a JSON object");
    if (!wants_object && !json.is_array()) return refused(field, "is not a JSON array");
    return {};
  }

  Status whole(const Field& field, std::int64_t value) const {
    const auto range = field.range.integers();
    if (value >= range.min && value <= range.max) return {};
    return refused(field, fmt::format("is {}, {}", value, field.range.problem()));
  }

  tl::unexpected<Error> refused(const Field& field, std::string_view problem) const {
    return refuse(fmt::format("{}: {} {}", what_, field.column_name(), problem));
  }

  std::string_view what_;
};

}  // namespace

Status check_text(std::string_view what, const Field& field, std::string_view text) {
  return Checker(what).text(field, text);
}

Status check_number(std::string_view what, const Field& field, double number) {
  return Checker(what).number(field, number);
}

Status check(const Fields& fields, const void* record, std::string_view what) {
  return Checker(what).fields(fields, record);
}

}  // namespace fleetfit::core
