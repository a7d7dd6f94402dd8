#include "fleetfit/yaml/fields.h"

#include <fmt/format.h>

#include <fmt/ranges.h>

#include <algorithm>

namespace fleetfit::yaml {
namespace {

using core::Field;
using core::FieldType;
using Shape = FieldType::Shape;

Status read_value(const YamlView& view, const FieldType& type, const Field& field, void* value);

Status read_text(const YamlView& view, const Field& field, std::string& into) {
  FLEETFIT_ASSIGN(into, view.as_text());
  if (!field.words.empty() && std::ranges::find(field.words, into) == field.words.end())
    return view.expected(fmt::format("one of {}", fmt::join(field.words, ", ")));
  if (const auto problem = core::problem_with(field, into)) return view.error(*problem);
  return {};
}

Status read_integer(const YamlView& view, const FieldType& type, const Field& field, void* value) {
  const auto allowed = field.range.integers();
  FLEETFIT_ASSIGN(const auto whole,
                  view.as_integer({.min = std::max(allowed.min, type.limits.min),
                                   .max = std::min(allowed.max, type.limits.max)}));
  type.set_whole(value, whole);
  return {};
}

Status read_number(const YamlView& view, const FieldType& type, const Field& field, void* value) {
  FLEETFIT_ASSIGN(const auto number, view.as_number());
  if (!field.range.contains(number))
    return view.error(fmt::format("{} is {}", number, field.range.problem()));
  type.set_number(value, number);
  return {};
}

Status read_choice(const YamlView& view, const FieldType& type, void* value) {
  const auto names = type.names();
  const auto text = view.as_text();
  const auto found = text ? names.find(*text) : std::nullopt;
  if (!found) return view.expected("one of " + names.list());
  type.set_whole(value, *found);
  return {};
}

Status read_time(const YamlView& view, const FieldType& type, void* value) {
  FLEETFIT_ASSIGN(const auto text, view.as_text());
  const auto time = core::parse_time(text);
  if (!time) return view.error(time.error().message);
  type.set_whole(value, time->time_since_epoch().count());
  return {};
}

Status read_list(const YamlView& view, const FieldType& type, const Field& field, void* value) {
  FLEETFIT_ASSIGN(const auto items, view.items());
  if (items.empty() && field.least > 0) return view.error("is empty");
  if (items.size() < field.least)
    return view.error(fmt::format("there are fewer than {}", field.least));
  if (items.size() > field.most)
    return view.error(fmt::format("there are more than {}", field.most));
  if (type.fixed_size > 0 && items.size() != type.fixed_size)
    return view.expected(fmt::format("a list of {}", type.fixed_size));
  if (type.clear != nullptr) type.clear(value);
  for (std::size_t i = 0; i < items.size(); ++i)
    FLEETFIT_TRY(read_value(items[i], *type.inner, field, core::new_element(type, value, i)));
  return {};
}

Status read_value(const YamlView& view, const FieldType& type, const Field& field, void* value) {
  switch (type.shape) {
    case Shape::text:
      return read_text(view, field, *static_cast<std::string*>(value));
    case Shape::boolean:
      return view.as_boolean().map([&](bool is) { type.set_whole(value, is ? 1 : 0); });
    case Shape::integer:
      return read_integer(view, type, field, value);
    case Shape::number:
      return read_number(view, type, field, value);
    case Shape::choice:
      return read_choice(view, type, value);
    case Shape::time:
      return read_time(view, type, value);
    case Shape::record:
      return read(view, type.fields(), value);
    case Shape::list:
      return read_list(view, type, field, value);
    case Shape::optional:
      type.clear(value);
      return read_value(view, *type.inner, field, type.add(value));
    case Shape::own:
      break;
  }
  return {};
}

Status read_parsed(const YamlView& view, const Field& field, void* record) {
  FLEETFIT_ASSIGN(const auto text, view.as_text());
  if (auto parsed = field.parse(text, record); !parsed) return view.error(parsed.error().message);
  return {};
}

Status read_fields(const YamlView& view, const core::Fields& fields, void* record);

Status read_inlined(const YamlView& view, const Field& field, void* record) {
  void* member = core::member_of(field, record);
  const auto fields = core::inlined_fields(field);
  if (field.type->shape != Shape::optional) return read_fields(view, fields, member);
  field.type->clear(member);
  for (const auto key : core::keys_of(fields)) {
    FLEETFIT_ASSIGN(const auto found, view.find(key));
    if (found) return read_fields(view, fields, field.type->add(member));
  }
  return {};
}

Status read_field_of(const YamlView& view, const Field& field, void* record) {
  if (field.is_inlined) return read_inlined(view, field, record);
  FLEETFIT_ASSIGN(const auto found, view.find(field.name));
  if (!found && !field.is_optional) return view.error(fmt::format("{} is missing", field.name));
  if (!found) return {};
  if (field.parse != nullptr) return read_parsed(*found, field, record);
  if (field.type == nullptr || field.type->shape == Shape::own) return {};
  return read_value(*found, *field.type, field, core::member_of(field, record));
}

Status read_fields(const YamlView& view, const core::Fields& fields, void* record) {
  for (const auto& field : fields.all) FLEETFIT_TRY(read_field_of(view, field, record));
  return {};
}

}  // namespace

Status read(const YamlView& view, const core::Fields& fields, void* record) {
  if (fields.others == core::OtherKeys::refused)
    FLEETFIT_TRY(view.allow_only(core::keys_of(fields)));
  FLEETFIT_TRY(read_fields(view, fields, record));
  if (fields.rule == nullptr) return {};
  if (const auto kept = fields.rule(record); !kept) return view.error(kept.error().message);
  return {};
}

Status first_error(std::initializer_list<Status> all) {
  const auto found = std::ranges::find_if(all, [](const Status& status) { return !status; });
  return found == all.end() ? Status() : *found;
}

Result<double> read_positive(const YamlView& view) {
  const auto number = view.as_number();
  if (number && !(*number > 0)) return view.error(fmt::format("{} is not above 0", *number));
  return number;
}

Result<bool> read_boolean(const YamlView& view) { return view.as_boolean(); }

Result<std::int64_t> read_count(const YamlView& view) {
  return view.as_integer({.min = 1, .max = 1'000'000'000});
}

Result<std::vector<std::string>> read_texts(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto items, view.items());
  if (items.empty()) return view.error("is empty");
  std::vector<std::string> texts;
  for (const YamlView& item : items) {
    FLEETFIT_ASSIGN(auto text, item.as_text());
    texts.push_back(std::move(text));
  }
  return texts;
}

Status require(const YamlView& view, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    FLEETFIT_TRY(view.at(key));
  }
  return {};
}

}  // namespace fleetfit::yaml
