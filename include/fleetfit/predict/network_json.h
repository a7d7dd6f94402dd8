#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/predict/network_parts.h"

/// The parts of networks in JSON. Reading checks types and that numbers are there, not that the
/// parts fit together.
namespace fleetfit::predict {

nlohmann::json to_json(const InputScaling& scaling);
nlohmann::json to_json(const OutputScaling& scaling);
nlohmann::json to_json(std::span<const DenseLayer> layers);

Result<InputScaling> read_input_scaling(const core::JsonView& json);
Result<OutputScaling> read_output_scaling(const core::JsonView& json);
Result<std::vector<DenseLayer>> read_layers(const core::JsonView& json);

/// Fails with `invalid_input` if the object is not of this type, or of a version that is not known.
Status check_type(const core::JsonView& json, std::string_view type, int version);

}  // namespace fleetfit::predict
