#include "fleetfit/core/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace fleetfit::core {

std::string_view Names::of(std::int64_t value) const {
  const auto found = std::ranges::find(all, value, &Name::value);
  return found == all.end() ? std::string_view() : found->text;
}

std::optional<std::int64_t> Names::find(std::string_view text) const {
  const auto found = std::ranges::find(all, text, &Name::text);
  return found == all.end() ? std::nullopt : std::optional(found->value);
}

std::string Names::list() const {
  std::string list;
  for (const auto& name : all) list += fmt::format("{}{}", list.empty() ? "" : ", ", name.text);
  return list;
}

Result<std::int64_t> Names::parse(std::string_view text) const {
  if (const auto value = find(text)) return *value;
  return refuse(fmt::format("'{}' is no {} ({})", text, what, list()));
}

}  // namespace fleetfit::core
