#include "fleetfit/core/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace fleetfit::core {

Names names_of(ErrorCode) {
  static constexpr Name kAll[] = {
      {ErrorCode::invalid_input, "invalid_input"}, {ErrorCode::unsupported, "unsupported"},
      {ErrorCode::not_found, "not_found"},         {ErrorCode::io, "io"},
      {ErrorCode::device_failed, "device_failed"}, {ErrorCode::unstable, "unstable"},
      {ErrorCode::cancelled, "cancelled"},         {ErrorCode::internal, "internal"}};
  return {.what = "code of an error", .all = kAll};
}

std::string_view to_string(ErrorCode code) {
  return names_of(code).of(static_cast<std::int64_t>(code));
}

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
