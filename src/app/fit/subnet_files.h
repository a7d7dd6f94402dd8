#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "app/fit/fit_folder.h"
#include "app/fit/fit_sources.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/fit/report.h"

/// The files of a model's fleet: the bundle that it is made of, and what each device gets.
namespace fleetfit::app {

/// The bundle of a model's fleet: that of the file, or the model made elastic by fleetfit-train. A
/// bundle that was made from the same model, data and plan is in the folder and is taken; work on
/// it that was interrupted goes on. Fails with `cancelled` when stopped.
Result<std::filesystem::path> elastic_bundle(const FitPlace& place, FitFolder& folder);

struct WriteRequest {
  std::filesystem::path bundle = {};
  std::string bundle_sha256 = {};
  std::string data = {};
  std::filesystem::path folder = {};
  std::string device_name = {};  ///< of the workplace
  bool int8 = false;
  std::uint64_t seed = 1;
  int threads = 1;
};

/// Writes the device's model (ONNX; quantized if it computes with int8, and then its accuracy is
/// that of the quantized one) and its pool.
Status write_fitted(const WriteRequest& request, fit::FittedDevice& device,
                    core::Progress& progress);

}  // namespace fleetfit::app
