#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/predict/kernel_predictor.h"
#include "fleetfit/space/space.h"

/// What the JSON of all models and the documents of all predictors have in common.
namespace fleetfit::predict {

/// A list of finite numbers that has just this length.
Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::string_view key,
                                              std::size_t length);
Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::size_t length);

/// What a document is. One that an older version of this program wrote is read, too.
struct DocumentKind {
  std::string_view type;
  int version = 1;
};

/// Fails with `invalid_input` if the object is of another type, or of a version that is not known.
Status check_kind(const core::JsonView& json, const DocumentKind& kind);

/// A record with its kind in "type" and "version", which its description names as others' fields.
template <core::Described T>
nlohmann::json json_of_kind(const T& record, const DocumentKind& kind) {
  auto json = core::to_json<nlohmann::json>(record);
  json["type"] = kind.type;
  json["version"] = kind.version;
  return json;
}

/// Fails as `check_kind` does, too.
template <core::Described T>
Result<T> read_of_kind(const core::JsonView& json, const DocumentKind& kind) {
  FLEETFIT_TRY(check_kind(json, kind));
  return core::read<T>(json);
}

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
