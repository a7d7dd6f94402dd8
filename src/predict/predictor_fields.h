#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/predict/kernel_predictor.h"
#include "fleetfit/space/space.h"

/// What the documents of all predictors have in common.
namespace fleetfit::predict {

/// The head of a document: format, version, type and identity.
nlohmann::json document_head(std::string_view type, const Identity& identity);

/// The head and the fields of a record.
template <core::Described T>
nlohmann::json document(std::string_view type, const Identity& identity, const T& parts) {
  auto json = document_head(type, identity);
  json.update(core::to_json<nlohmann::json>(parts));
  return json;
}

/// Refuses another format, and a version from the future by its number. Gives the type.
Result<std::string> read_document_type(const core::JsonView& json);

/// Refuses a list of features that this program does not know, by its number.
Result<Identity> read_identity(const core::JsonView& json);

/// The space that "space" names, in the version of "space_version" (1 if absent).
Result<const space::Space*> read_space(const core::JsonView& json);

}  // namespace fleetfit::predict
