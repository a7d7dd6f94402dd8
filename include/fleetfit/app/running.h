#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fleetfit/app/devices.h"
#include "fleetfit/app/models.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/result.h"

/// Use cases of running models: on given inputs, and on two runtimes for comparison.
namespace fleetfit::app {

struct InputFile {
  std::string name;
  std::filesystem::path file;  ///< .npy
};

enum class MissingInputs : std::uint8_t {
  refuse,
  random,  ///< uniform in [-1, 1) where they are floats, by the seed
};

struct RunRequest {
  std::filesystem::path model = {};
  ModelOptions options = {};
  std::string device = std::string(kLocalDevice);
  std::vector<InputFile> inputs = {};
  MissingInputs missing = MissingInputs::refuse;
  std::filesystem::path folder = {};  ///< for the outputs; made if need be
  std::uint64_t seed = 1;
  int threads = 1;  ///< for preparing the model
};

/// Values of an output that are no numbers to work with.
struct OddValues {
  std::int64_t nan = 0;
  std::int64_t infinite = 0;

  bool any() const { return nan > 0 || infinite > 0; }
};
core::Fields fields_of(const OddValues*);
/// "3 NaN and 1 infinite".
std::string to_string(const OddValues& odd);

struct WrittenTensor {
  std::string name;
  std::string file;
  std::string dtype;
  std::vector<std::int64_t> shape;
  OddValues odd = {};
};

struct RunSummary {
  std::vector<WrittenTensor> outputs = {};
  std::vector<std::string> notes = {};
};
core::Fields fields_of(const RunSummary*);

/// Runs a model once and writes a .npy file for each output, named after it. Fails with
/// `invalid_input`, naming the input, on one that is missing, given twice, not the model's, or of
/// another type or shape.
Result<RunSummary> run_model(Workplace& workplace, const RunRequest& request);

struct CheckRequest {
  std::filesystem::path model = {};
  ModelOptions options = {};
  std::string against = {};        ///< a runtime, as a device has it, or the name of a device
  std::string precision = "fp32";  ///< "int8" quantizes a float model before
  std::uint64_t seed = 1;
  int threads = 1;  ///< for preparing the model
};

struct OutputDifference {
  std::string name;
  double max_abs_diff = 0;
  /// The largest difference as a share of the largest magnitude in the other runtime's output.
  double max_rel_diff = 0;
  OddValues engine_odd = {};
  OddValues other_odd = {};
};

/// Relative differences up to which outputs are the same. Quantized networks round in each layer,
/// and runtimes round at other places: the zoo's networks differ by up to 0.08, narrow ones with
/// random weights by more, up to as much as quantization itself changes them.
inline constexpr double kFloatBound = 1e-3;
inline constexpr double kQuantizedBound = 0.1;
/// Differences that floats make wherever a network computes with values around 1, as it does inside
/// of a sigmoid that gives nearly 0.
inline constexpr double kFloatNoise = 1e-6;

struct CheckReport {
  std::vector<OutputDifference> outputs = {};
  double bound = kFloatBound;
  /// Of each output the relative difference is below the bound, or the absolute one is noise.
  bool pass = false;
};
core::Fields fields_of(const CheckReport*);

/// Runs the engine and another runtime on the same random inputs and compares their outputs.
Result<CheckReport> check_model(Workplace& workplace, const CheckRequest& request);

}  // namespace fleetfit::app
