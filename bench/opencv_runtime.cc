// OpenCV's module dnn as a runtime, for comparison: docs/formats/runtime.md.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/version.hpp>
#include <opencv2/dnn.hpp>
#include <string>

#include "fleetfit/graph/import.h"
#include "fleetfit/measure/exec_runtime.h"

namespace fleetfit::bench {
namespace {

using measure::LoadedModel;
using measure::LoadOptions;
using measure::NamedValue;
using measure::RuntimeInfo;
using measure::RunTimes;

class OpenCvRuntime final : public measure::Runtime {
 public:
  Result<RuntimeInfo> info() override { return RuntimeInfo{"opencv", CV_VERSION, "dnn, cpu"}; }

  Result<LoadedModel> load(const std::filesystem::path& model,
                           const LoadOptions& options) override {
    FLEETFIT_ASSIGN(const auto imported, graph::import_model(model));
    try {
      cv::setNumThreads(options.threads);
      net_ = cv::dnn::readNetFromONNX(model.string());
      net_.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
      net_.setPreferableTarget(cv::dnn::DNN_TARGET_CPU);
      set_inputs(imported.graph);
      net_.forward();
    } catch (const std::exception& error) {
      return fail(ErrorCode::unsupported, first_line(error.what()));
    }
    return LoadedModel{};
  }

  Result<RunTimes> run(int runs, bool per_operator) override {
    if (per_operator) return fail(ErrorCode::unsupported, "OpenCV is not asked for operators");
    RunTimes times;
    for (int i = 0; i < runs; ++i) {
      const auto start = std::chrono::steady_clock::now();
      net_.forward();
      const auto end = std::chrono::steady_clock::now();
      times.ms.push_back(std::chrono::duration<double, std::milli>(end - start).count());
      set_again();
    }
    return times;
  }

  Result<std::vector<NamedValue>> compute(std::span<const NamedValue> /*inputs*/) override {
    return fail(ErrorCode::unsupported, "OpenCV is here to be timed");
  }

  Status unload() override {
    net_ = {};
    return {};
  }

 private:
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  void set_inputs(const graph::Graph& graph) {
    inputs_.clear();
    for (const auto& value : random_inputs(graph, 1)) {
      const std::vector<int> sizes(value.shape.begin(), value.shape.end());
      cv::Mat input(sizes, CV_32F);
      std::ranges::copy(value.data.as<float>(), input.ptr<float>());
      inputs_.push_back({graph.tensor(graph.inputs[inputs_.size()]).name, input});
    }
    set_again();
  }

  /// Without a new input OpenCV takes the result of the last run.
  void set_again() {
    for (const auto& [name, value] : inputs_) net_.setInput(value, name);
  }

  cv::dnn::Net net_;
  std::vector<std::pair<std::string, cv::Mat>> inputs_;
};

}  // namespace
}  // namespace fleetfit::bench

int main() {
  fleetfit::bench::OpenCvRuntime runtime;
  const auto status = fleetfit::measure::serve_runtime(runtime, std::cin, std::cout);
  return status ? 0 : 1;
}
