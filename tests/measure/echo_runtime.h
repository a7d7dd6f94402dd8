#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "fleetfit/measure/runtime.h"

namespace fleetfit::measure {

/// A runtime that runs nothing: it says what it was told. Its times are 1, 2, 3, … ms, its outputs
/// are the inputs.
class EchoRuntime final : public Runtime {
 public:
  Result<RuntimeInfo> info() override {
    return RuntimeInfo{.name = "echo", .version = "1.2", .build = "test"};
  }

  Result<LoadedModel> load(const std::filesystem::path& model,
                           const LoadOptions& options) override {
    loaded_ = false;
    std::error_code ignored;
    if (!std::filesystem::exists(model, ignored)) {
      return fail(ErrorCode::not_found, "there is no such model");
    }
    loaded_ = true;
    return LoadedModel{.choices = std::to_string(options.threads) + " " + options.kernels + " " +
                                  options.known_choices};
  }

  Result<RunTimes> run(int runs, bool per_operator) override {
    if (!loaded_) return fail(ErrorCode::invalid_input, "no model is loaded");
    RunTimes times{.peak_memory_bytes = 4096};
    for (int i = 1; i <= runs; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(i));
      times.ms.push_back(i);
    }
    if (per_operator) times.operators = {{"a", "Conv", "fast", 0.25}, {"b+c", "Relu", "", 0}};
    return times;
  }

  Result<std::vector<NamedValue>> compute(std::span<const NamedValue> inputs) override {
    if (!loaded_) return fail(ErrorCode::invalid_input, "no model is loaded");
    return std::vector<NamedValue>(inputs.begin(), inputs.end());
  }

  Status unload() override {
    loaded_ = false;
    return {};
  }

 private:
  bool loaded_ = false;
};

}  // namespace fleetfit::measure
