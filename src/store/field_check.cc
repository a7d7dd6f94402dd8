#include "store/field_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"

namespace fleetfit::store {
namespace {

// Bytes of the UTF-8 character that `text` begins with; 0 if it is none (wrong or overlong bytes, a
// surrogate, a number above U+10FFFF).
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

}  // namespace

void FieldCheck::text(std::string_view field, std::string_view value) {
  if (value.find('\0') != std::string_view::npos) return refuse(field, "contains a NUL character");
  if (!is_utf8(value)) refuse(field, "is not UTF-8");
}

void FieldCheck::key(std::string_view field, std::string_view value) {
  if (value.empty()) return refuse(field, "is empty");
  text(field, value);
}

void FieldCheck::json(std::string_view field, std::string_view value) {
  const auto parsed = core::parse_json(value, field);
  if (!parsed) return keep(parsed.error().message);
  if (!parsed->is_object()) refuse(field, "is not a JSON object");
}

void FieldCheck::json_array(std::string_view field, std::string_view value) {
  const auto parsed = core::parse_json(value, field);
  if (!parsed) return keep(parsed.error().message);
  if (!parsed->is_array()) refuse(field, "is not a JSON array");
}

void FieldCheck::hash(std::string_view field, std::string_view value) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (value.size() != 64 || !std::ranges::all_of(value, is_digit))
    refuse(field, "is not a SHA-256 of 64 small hexadecimal digits");
}

void FieldCheck::number(std::string_view field, double value) {
  if (!std::isfinite(value)) refuse(field, fmt::format("is {}, which is no finite number", value));
}

void FieldCheck::amount(std::string_view field, std::optional<double> value) {
  if (!value) return;
  number(field, *value);
  if (*value < 0) refuse(field, fmt::format("is {}, below zero", *value));
}

void FieldCheck::count(std::string_view field, std::int64_t value) {
  if (value < 0) refuse(field, fmt::format("is {}, below zero", value));
}

void FieldCheck::refuse(std::string_view field, std::string_view problem) {
  if (passed()) keep(fmt::format("{} {}", field, problem));
}

Status FieldCheck::result() const {
  if (passed()) return {};
  return fail(ErrorCode::invalid_input, fmt::format("{}: {}", record_, problem_));
}

void FieldCheck::keep(std::string problem) {
  if (passed()) problem_ = std::move(problem);
}

}  // namespace fleetfit::store
