#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

namespace fleetfit::adapt {

/// Whether a document says that it is a `format` of a version that this program knows.
inline Status check_header(const core::JsonView& json, std::string_view format,
                           std::int64_t version) {
  FLEETFIT_ASSIGN(const auto found, json.text("format"));
  if (found != format)
    return json.error(fmt::format(R"(format: this is "{}", not "{}")", found, format));
  FLEETFIT_ASSIGN(const auto number, json.integer("version", {.min = 1}));
  if (number > version)
    return json.error(
        fmt::format("version: {} is newer than the {} that this program knows", number, version));
  return {};
}

}  // namespace fleetfit::adapt
