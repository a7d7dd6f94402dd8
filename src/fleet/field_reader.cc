#include "fleet/field_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace fleetfit::fleet {

std::optional<core::JsonView> FieldReader::find(std::string_view key) {
  if (error_) return std::nullopt;
  const bool may_be_absent = key.ends_with('?');
  if (may_be_absent) key.remove_suffix(1);
  auto field = view_.find(key);
  if (!field) {
    error_ = field.error();
    return std::nullopt;
  }
  if (!*field && !may_be_absent) error_ = view_.error(fmt::format("{}: is missing", key)).value();
  return *field;
}

void FieldReader::refuse(Error error) {
  if (!error_) error_ = std::move(error);
}

Status FieldReader::status() const {
  if (error_) return tl::unexpected(*error_);
  return {};
}

FieldReader& FieldReader::text(std::string_view key, std::string& target, std::size_t most_bytes) {
  const auto field = find(key);
  if (!field) return *this;
  auto value = field->as_text();
  if (!value) {
    error_ = value.error();
  } else if (value->size() > most_bytes) {
    error_ = field->error(fmt::format("has more than {} bytes", most_bytes)).value();
  } else {
    target = *std::move(value);
  }
  return *this;
}

FieldReader& FieldReader::checked(std::string_view key, std::string& target,
                                  Status (*check)(std::string_view)) {
  const auto field = find(key);
  if (!field) return *this;
  auto value = field->as_text();
  if (!value) {
    error_ = value.error();
    return *this;
  }
  const bool left_empty = key.ends_with('?') && value->empty();
  if (const auto ok = check(*value); !ok && !left_empty)
    error_ = field->error(ok.error().message).value();
  target = *std::move(value);
  return *this;
}

FieldReader& FieldReader::word(std::string_view key, std::string& target,
                               std::span<const std::string_view> words) {
  const auto field = find(key);
  if (!field) return *this;
  auto value = field->as_text();
  if (!value)
    error_ = value.error();
  else if (std::ranges::find(words, *value) == words.end())
    error_ = field->error(fmt::format("expected one of {}", fmt::join(words, ", "))).value();
  else
    target = *std::move(value);
  return *this;
}

FieldReader& FieldReader::integer(std::string_view key, std::int64_t& target,
                                  const core::IntegerRange& range) {
  const auto field = find(key);
  if (!field) return *this;
  const auto value = field->as_integer(range);
  if (value)
    target = *value;
  else
    error_ = value.error();
  return *this;
}

FieldReader& FieldReader::small_integer(std::string_view key, int& target, int min, int max) {
  std::int64_t value = target;
  integer(key, value, {.min = min, .max = max});
  if (!error_) target = static_cast<int>(value);
  return *this;
}

FieldReader& FieldReader::number(std::string_view key, double& target, const NumberRange& range) {
  const auto field = find(key);
  if (!field) return *this;
  const auto value = field->as_number();
  if (!value)
    error_ = value.error();
  else if (!(*value > range.above && *value <= range.max))
    error_ =
        field->error(fmt::format("expected a number above {} and up to {}", range.above, range.max))
            .value();
  else
    target = *value;
  return *this;
}

FieldReader& FieldReader::boolean(std::string_view key, bool& target) {
  const auto field = find(key);
  if (!field) return *this;
  const auto value = field->as_boolean();
  if (value)
    target = *value;
  else
    error_ = value.error();
  return *this;
}

FieldReader& FieldReader::object(std::string_view key, std::string& target,
                                 std::size_t most_bytes) {
  const auto field = find(key);
  if (!field) return *this;
  if (!field->value().is_object()) {
    error_ = field->error("expected an object").value();
    return *this;
  }
  auto text = core::format_json_line(field->value());
  if (text.size() > most_bytes)
    error_ = field->error(fmt::format("has more than {} bytes", most_bytes)).value();
  else
    target = std::move(text);
  return *this;
}

std::vector<core::JsonView> FieldReader::elements(std::string_view key, std::size_t most) {
  const auto field = find(key);
  if (!field) return {};
  auto items = field->items();
  if (!items) {
    error_ = items.error();
    return {};
  }
  if (items->size() > most) {
    error_ = field->error(fmt::format("has more than {} elements", most)).value();
    return {};
  }
  return *std::move(items);
}

}  // namespace fleetfit::fleet
