#include "fleetfit/core/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text_place.h"
#include "fleetfit/core/read_fields.h"

namespace fleetfit::core {
namespace {

using Json = nlohmann::ordered_json;
using Shape = FieldType::Shape;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// "zero" and "one" as words, as in "below zero".
std::string spelled(double number) {
  if (number == 0) return "zero";
  if (number == 1) return "one";
  return fmt::format("{}", number);
}

bool is_hash(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::ranges::all_of(text, is_digit);
}

const std::string& text_at(const void* value) { return *static_cast<const std::string*>(value); }

bool is_nothing(const Field& field, const void* record) {
  if (field.is_default != nullptr) return field.is_default(record);
  return field.type->size != nullptr && field.type->size(field.member(record)) == 0;
}

// Out.

void write_fields(const Fields& fields, const void* record, Json& json);

void write_by_function(const Field& field, const void* record, Json& json) {
  Json value;
  field.write(record, value);
  if (value.is_null() && field.if_default == Field::IfDefault::left_out) return;
  json[std::string(field.name)] = std::move(value);
}

void write_field(const Field& field, const void* record, Json& json) {
  if (field.write != nullptr) return write_by_function(field, record, json);
  if (field.type == nullptr) return;
  if (field.is_inlined) {
    if (const void* inlined = inlined_record(field, record))
      write_fields(inlined_fields(field), inlined, json);
    return;
  }
  if (field.if_default == Field::IfDefault::written || !is_nothing(field, record)) {
    json[std::string(field.name)] = value_json(*field.type, field, field.member(record));
  } else if (field.if_default == Field::IfDefault::null) {
    json[std::string(field.name)] = nullptr;
  }
}

void write_fields(const Fields& fields, const void* record, Json& json) {
  for (const auto& field : fields.all) write_field(field, record, json);
}

/// The JSON in a text; what is none becomes an empty object or list.
Json embedded(const Field& field, const std::string& text) {
  auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (field.text == Field::Text::json_list) return json.is_array() ? json : Json::array();
  return json.is_object() ? json : Json::object();
}

Json list_json(const FieldType& type, const Field& field, const void* value) {
  auto list = Json::array();
  const std::size_t size = type.size(value);
  for (std::size_t i = 0; i < size; ++i)
    list.push_back(value_json(*type.inner, field, type.at(value, i)));
  return list;
}

// In.

// Paths of elements would cost more than the numbers.
bool is_plain_number(const FieldType& type, const Field& field) {
  return type.shape == Shape::number && field.range.low == -kInfinity &&
         field.range.high == kInfinity;
}

struct JsonFormat {
  using View = JsonView;
  using Reader = FieldReader<JsonFormat>;

  static Status read_text(const JsonView& view, const Field& field, std::string& into) {
    if (field.holds_json()) {
      const bool is_object = field.text == Field::Text::json_object;
      const auto& json = view.value();
      if (is_object ? !json.is_object() : !json.is_array())
        return view.error(is_object ? "expected an object" : "expected a list");
      into = format_json_line(json);
      if (into.size() > field.most)
        return view.error(fmt::format("has more than {} bytes", field.most));
      return {};
    }
    FLEETFIT_ASSIGN(into, view.as_text());
    if (const auto problem = problem_with(field, into)) return view.error(*problem);
    return {};
  }

  static Result<std::int64_t> read_choice(const JsonView& view, const Names& names) {
    FLEETFIT_ASSIGN(const auto text, view.as_text());
    const auto found = names.find(text);
    if (!found) return view.error(fmt::format("\"{}\" is none of {}", text, names.list()));
    return *found;
  }

  static Status check_size(const JsonView& view, const FieldType& type, const Field& field) {
    if (!view.value().is_array()) return {};  // the reader of elements says so
    const auto size = view.value().size();
    if (size > field.most) return view.error(fmt::format("has more than {} elements", field.most));
    if (size < field.least) {
      return view.error(size == 0 ? "is empty"
                                  : fmt::format("has fewer than {} elements", field.least));
    }
    if (type.fixed_size > 0 && size != type.fixed_size)
      return view.error(fmt::format("expected {} elements, found {}", type.fixed_size, size));
    return {};
  }

  static Status read_list(const JsonView& view, const FieldType& type, const Field& field,
                          void* value) {
    FLEETFIT_TRY(check_size(view, type, field));
    if (type.clear != nullptr) type.clear(value);
    if (is_plain_number(*type.inner, field)) {
      FLEETFIT_ASSIGN(const auto numbers, view.as_numbers());
      for (std::size_t i = 0; i < numbers.size(); ++i)
        type.inner->set_number(new_element(type, value, i), numbers[i]);
      return {};
    }
    FLEETFIT_ASSIGN(const auto items, view.items());
    for (std::size_t i = 0; i < items.size(); ++i)
      FLEETFIT_TRY(Reader::read_value(items[i], *type.inner, field, new_element(type, value, i)));
    return {};
  }

  static Status read_own(const JsonView& view, const FieldType& type, void* value) {
    return type.read(view, value);
  }

  static bool is_read(const Field& field) {
    return field.type != nullptr || field.read != nullptr || field.parse != nullptr;
  }
  static Status read_by_function(const JsonView& view, const Field& field, void* record) {
    return field.read(view, record);
  }

  static std::string out_of_range(double number, const NumberRange& range) {
    return fmt::format("is {}, {}", number, range.problem());
  }
  static std::string missing(std::string_view name) {
    return fmt::format("the field '{}' is missing", name);
  }

  static Status allow_only(const JsonView& view, const std::vector<std::string_view>& known) {
    if (!view.value().is_object()) return {};  // the reader of the first field says so
    for (const auto& item : view.value().items())
      if (std::ranges::find(known, std::string_view(item.key())) == known.end())
        return view.error(fmt::format("unknown field '{}'", excerpt(item.key())));
    return {};
  }
};

}  // namespace

IntegerRange NumberRange::integers() const {
  IntegerRange range;
  if (low > -kInfinity) range.min = static_cast<std::int64_t>(low) + (without_low ? 1 : 0);
  if (high < kInfinity) range.max = static_cast<std::int64_t>(high);
  return range;
}

std::string NumberRange::problem() const {
  if (high == kInfinity)
    return without_low ? fmt::format("not above {}", low) : fmt::format("below {}", spelled(low));
  if (low == -kInfinity) return fmt::format("above {}", high);
  if (without_low) return fmt::format("not above {} and up to {}", low, high);
  return fmt::format("not from {} to {}", low, high);
}

std::vector<std::string_view> keys_of(const Fields& fields) {
  std::vector<std::string_view> keys;
  for (const auto& field : fields.all) {
    if (!field.is_inlined) {
      keys.push_back(field.name);
      continue;
    }
    const auto inlined = keys_of(inlined_fields(field));
    keys.insert(keys.end(), inlined.begin(), inlined.end());
  }
  return keys;
}

std::optional<std::string> problem_with(const Field& field, std::string_view text) {
  if (field.is_optional && text.empty()) return std::nullopt;
  if (field.text == Field::Text::key && text.empty()) return "is empty";
  if (field.text == Field::Text::hash && !is_hash(text))
    return "is not a SHA-256 of 64 small hexadecimal digits";
  if (text.size() > field.most) return fmt::format("has more than {} bytes", field.most);
  if (!field.words.empty() && std::ranges::find(field.words, text) == field.words.end())
    return fmt::format("\"{}\" is none of {}", text, fmt::join(field.words, ", "));
  if (field.text_check != nullptr)
    if (const auto ok = field.text_check(text); !ok) return ok.error().message;
  return std::nullopt;
}

void* member_of(const Field& field, void* record) {
  return const_cast<void*>(field.member(record));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

void* new_element(const FieldType& list, void* value, std::size_t index) {
  if (list.fixed_size == 0) return list.add(value);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the list is not const
  return const_cast<void*>(list.at(value, index));
}

Fields inlined_fields(const Field& field) {
  const bool is_optional = field.type->shape == Shape::optional;
  return (is_optional ? field.type->inner : field.type)->fields();
}

const void* inlined_record(const Field& field, const void* record) {
  const void* member = field.member(record);
  if (field.type->shape != Shape::optional) return member;
  return field.type->size(member) == 0 ? nullptr : field.type->at(member, 0);
}

Json value_json(const FieldType& type, const Field& field, const void* value) {
  switch (type.shape) {
    case Shape::text:
      return field.holds_json() ? embedded(field, text_at(value)) : Json(text_at(value));
    case Shape::boolean:
      return type.whole(value) != 0;
    case Shape::integer:
      if (type.is_unsigned) return static_cast<std::uint64_t>(type.whole(value));
      return type.whole(value);
    case Shape::number:
      return type.number(value);
    case Shape::choice:
      return type.names().of(type.whole(value));
    case Shape::time:
      return time_text(Time(std::chrono::milliseconds(type.whole(value))));
    case Shape::record:
      return to_json(type.fields(), value);
    case Shape::list:
      return list_json(type, field, value);
    case Shape::optional:
      return type.size(value) == 0 ? Json() : value_json(*type.inner, field, type.at(value, 0));
    case Shape::own:
      break;
  }
  Json json;
  type.write(value, json);
  return json;
}

Json to_json(const Fields& fields, const void* record) {
  auto json = Json::object();
  write_fields(fields, record, json);
  return json;
}

Status read(const JsonView& view, const Fields& fields, void* record) {
  return JsonFormat::Reader::read(view, fields, record);
}

}  // namespace fleetfit::core
