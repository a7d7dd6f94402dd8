#include "fleetfit/yaml/fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace fleetfit::yaml {

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
