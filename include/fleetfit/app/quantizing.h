#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/app/models.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"

/// Use case: a float model quantized to 8 bits after its training.
namespace fleetfit::app {

struct QuantizeRequest {
  std::filesystem::path in = {};
  std::filesystem::path out = {};
  ModelOptions options = {};
  /// A data set (docs/formats/datasets.md), or "random" for a model whose data nobody has.
  std::string calibrate = {};
  std::string method = "min-max";   ///< of the ranges; or "percentile"
  std::int64_t samples = 100;       ///< images to calibrate with
  std::int64_t test_images = 1000;  ///< most images to take the accuracy on
  /// Of each channel, after pixels were brought to 0 to 1: input = (pixel - mean) / stddev.
  std::vector<float> mean = {};
  std::vector<float> stddev = {};
  std::uint64_t seed = 1;  ///< of the choice of images
  int threads = 1;
};

/// Shares of images whose class was found.
struct QuantizedAccuracy {
  double float_share = 0;
  double int8_share = 0;
  std::int64_t images = 0;
};

struct QuantizeSummary {
  ConvertSummary file = {};
  std::int64_t samples = 0;
  std::optional<QuantizedAccuracy> accuracy = std::nullopt;
  std::string why_no_accuracy = {};  ///< "" if there is one
};
core::Fields fields_of(const QuantizeSummary*);

/// Quantizes with the ranges that activations have on images of the data set's training part,
/// brought to the size of the model's input, and writes ONNX with QuantizeLinear and
/// DequantizeLinear. Where the model's first output has a score for each class of the data, also
/// reports the accuracy before and after on images of the test part. Fails with `invalid_input` if
/// the model is quantized already or does not take one image.
Result<QuantizeSummary> quantize_model(const QuantizeRequest& request, core::Progress& progress);

}  // namespace fleetfit::app
