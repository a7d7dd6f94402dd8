#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/analytic.h"

/// Devices that exist on paper: predictors made from a specification instead of measurements.
namespace fleetfit::app {

struct PaperDeviceRequest {
  std::string name = {};
  std::string precision = "fp32";  ///< or "int8"
  std::string rules = "engine";    ///< by which networks become kernels: "tflite-gpu:mali-g76", …
  std::variant<predict::RooflineSpecification, predict::AcceleratorSpecification> specification =
      {};
  std::filesystem::path output = {};
};

/// Writes the predictor's file. Fails with `invalid_input`, naming the field, on a specification
/// that makes no sense, and with `not_found` on rules that do not exist.
Status write_paper_device(const PaperDeviceRequest& request);

/// An accelerator of the literature by its name, "zcu102-1" to "zcu102-9"; `not_found`, with the
/// names that there are, else.
Result<predict::AcceleratorSpecification> find_accelerator(const std::string& name);

}  // namespace fleetfit::app
