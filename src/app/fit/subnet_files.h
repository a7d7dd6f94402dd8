#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/fit/report.h"

namespace fleetfit::app {

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
