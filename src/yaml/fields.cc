#include "fleetfit/yaml/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fleetfit/core/read_fields.h"

namespace fleetfit::yaml {
namespace {

using core::Field;
using core::FieldType;

struct YamlFormat {
  using View = YamlView;
  using Reader = core::FieldReader<YamlFormat>;

  static Status read_text(const YamlView& view, const Field& field, std::string& into) {
    FLEETFIT_ASSIGN(into, view.as_text());
    if (!field.words.empty() && std::ranges::find(field.words, into) == field.words.end())
      return view.expected(fmt::format("one of {}", fmt::join(field.words, ", ")));
    if (const auto problem = core::problem_with(field, into)) return view.error(*problem);
    return {};
  }

  static Result<std::int64_t> read_choice(const YamlView& view, const core::Names& names) {
    const auto text = view.as_text();
    const auto found = text ? names.find(*text) : std::nullopt;
    if (!found) return view.expected("one of " + names.list());
    return *found;
  }

  static Status read_list(const YamlView& view, const FieldType& type, const Field& field,
                          void* value) {
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
      FLEETFIT_TRY(
          Reader::read_value(items[i], *type.inner, field, core::new_element(type, value, i)));
    return {};
  }

  // What functions read from JSON is left to the caller.
  static bool is_read(const Field&) { return true; }
  static Status read_by_function(const YamlView&, const Field&, void*) { return {}; }
  static Status read_own(const YamlView&, const FieldType&, void*) { return {}; }

  static std::string out_of_range(double number, const core::NumberRange& range) {
    return fmt::format("{} is {}", number, range.problem());
  }
  static std::string missing(std::string_view name) { return fmt::format("{} is missing", name); }

  static Status allow_only(const YamlView& view, const std::vector<std::string_view>& known) {
    return view.allow_only(known);
  }
};

}  // namespace

Status read(const YamlView& view, const core::Fields& fields, void* record) {
  return YamlFormat::Reader::read(view, fields, record);
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
