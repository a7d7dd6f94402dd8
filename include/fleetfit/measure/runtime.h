#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/records/measurement.h"

/// A runtime is what executes a model file: the engine in this process, or another program that
/// speaks JSON lines (docs/formats/runtime.md), so that anybody can add one without C++.
namespace fleetfit::measure {

/// Who a runtime is. Any change makes another device of it.
struct RuntimeInfo {
  std::string name;     ///< "fleetfit", "onnxruntime", …
  std::string version;  ///< of the runtime itself, e.g. "1.30.0"
  std::string build;    ///< kernels, compiler, instruction set: whatever changes its speed

  bool operator==(const RuntimeInfo&) const = default;
};
core::Fields fields_of(const RuntimeInfo*);

struct LoadOptions {
  int threads = 1;
  std::string kernels = "auto";  ///< of the engine: "auto", "onednn", "xnnpack", "reference"
  /// Kernel choices known from earlier runs (a JSON text of the runtime's own); "" if none.
  std::string known_choices = {};
};

/// What a runtime says about a model that it has loaded.
struct LoadedModel {
  std::string choices =
      {};  ///< kernel choices to hand back as `known_choices` next time; may be ""
};

using records::OperatorTime;

/// Times of several runs of a model.
struct RunTimes {
  std::vector<double> ms = {};               ///< one for each run, in order
  std::vector<OperatorTime> operators = {};  ///< empty unless asked for
  std::int64_t peak_memory_bytes = 0;        ///< of the process since it started; 0 if unknown
};

/// One tensor by name.
struct NamedValue {
  std::string name;
  graph::Value value;
};

/// Holds at most one loaded model. Every call may fail with `device_failed` (it died, hung or spoke
/// nonsense); after such a failure the next `load` starts clean. Belongs to one thread at a time.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual Result<RuntimeInfo> info() = 0;

  /// Loads an ONNX or TFLite file with its inputs filled with reproducible random values.
  /// `unsupported` names the operators that it cannot run.
  virtual Result<LoadedModel> load(const std::filesystem::path& model,
                                   const LoadOptions& options) = 0;

  /// Runs the loaded model `runs` times and takes the time of each inside the runtime. With
  /// `per_operator`, says the mean time of each operator over these runs as well.
  virtual Result<RunTimes> run(int runs, bool per_operator) = 0;

  /// Runs the loaded model once on these inputs (all of them, by name) and gives its outputs.
  virtual Result<std::vector<NamedValue>> compute(std::span<const NamedValue> inputs) = 0;

  virtual Status unload() = 0;
};

/// The engine in this process as a runtime. `LoadOptions::kernels` is "auto", "onednn", "xnnpack"
/// or "reference"; choices are a JSON object of questions and answers.
std::unique_ptr<Runtime> make_engine_runtime();

}  // namespace fleetfit::measure
