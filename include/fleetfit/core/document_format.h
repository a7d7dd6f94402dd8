#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

namespace fleetfit::core {

/// Fails with `invalid_input`, naming the document, unless its "format" is this one, in a "version"
/// up to the one that this program knows.
inline Status check_format(const JsonView& json, std::string_view format, std::int64_t version) {
  FLEETFIT_ASSIGN(const auto found, json.text("format"));
  if (found != format)
    return json.error("format is '" + found + "', expected '" + std::string(format) + "'");
  FLEETFIT_ASSIGN(const auto number, json.integer("version", {.min = 1}));
  if (number <= version) return {};
  return json.error("version " + std::to_string(number) + " is newer than this program knows");
}

}  // namespace fleetfit::core
