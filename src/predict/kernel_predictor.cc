#include "fleetfit/predict/kernel_predictor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/predict/analytic.h"
#include "fleetfit/predict/operator_predictor.h"
#include "predict/documents.h"

namespace fleetfit::predict {

Result<std::unique_ptr<KernelPredictor>> kernel_predictor_from_json(const core::JsonView& json) {
  FLEETFIT_ASSIGN(const auto type, read_document_type(json));
  FLEETFIT_ASSIGN(auto identity, read_identity(json));
  if (type == "operators") return OperatorPredictor::from_json(json, std::move(identity));
  if (type == "roofline") return RooflineDevice::from_json(json, std::move(identity));
  if (type == "accelerator") return TiledAccelerator::from_json(json, std::move(identity));
  return json.at("type")->error(fmt::format("'{}' is no predictor of kernels", type));
}

Result<std::unique_ptr<KernelPredictor>> read_kernel_predictor(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto json, core::read_json(file));
  return kernel_predictor_from_json(core::JsonView(json, file.string()));
}

Status write_kernel_predictor(const std::filesystem::path& file, const KernelPredictor& predictor) {
  return core::write_json(file, predictor.to_json());
}

Status check_fits(const Identity& identity, const Target& target) {
  const auto mismatch = [&](std::string_view what, std::string_view its, std::string_view other) {
    return refuse(
        fmt::format("the predictor is for {} '{}', not for {} '{}'", what, its, what, other));
  };
  if (!target.precision.empty() && identity.precision != target.precision)
    return mismatch("precision", identity.precision, target.precision);
  if (target.fingerprint.empty() || identity.fingerprint.empty() ||
      identity.fingerprint == target.fingerprint)
    return {};
  if (identity.device != target.device) return mismatch("device", identity.device, target.device);
  return refuse(
      fmt::format("device '{}' has changed since the predictor was trained: its fingerprint "
                  "was {} and is {}",
                  target.device, identity.fingerprint, target.fingerprint));
}

}  // namespace fleetfit::predict
