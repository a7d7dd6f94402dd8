#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/predict/kernel_predictor.h"
#include "fleetfit/space/space.h"

/// What the documents of all predictors have in common.
namespace fleetfit::predict {

/// The head of a document: format, version, type and identity.
nlohmann::json document_head(std::string_view type, const Identity& identity);

/// Refuses another format, and a version from the future by its number. Gives the type.
Result<std::string> read_document_type(const core::JsonView& json);

/// Refuses a list of features that this program does not know, by its number.
Result<Identity> read_identity(const core::JsonView& json);

/// The space that "space" names, in the version of "space_version" (1 if absent).
Result<const space::Space*> read_space(const core::JsonView& json);

/// A field that must be a number above 0 (`positive`) or from 0 (`not_negative`).
Result<double> positive(const core::JsonView& json, std::string_view key);
Result<double> not_negative(const core::JsonView& json, std::string_view key);

}  // namespace fleetfit::predict
