#include "fleetfit/measure/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fleetfit/core/json.h"
#include "fleetfit/core/process_info.h"
#include "fleetfit/core/version.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/graph/import.h"

namespace fleetfit::measure {
namespace {

constexpr std::uint64_t kInputSeed = 1;

Result<engine::Library> parse_library(const std::string& kernels) {
  if (kernels == "auto") return engine::Library::automatic;
  if (kernels == "onednn") return engine::Library::onednn;
  if (kernels == "xnnpack") return engine::Library::xnnpack;
  if (kernels == "reference") return engine::Library::reference;
  return fail(
      ErrorCode::invalid_input,
      fmt::format("there are no kernels '{}'; there are auto, onednn, xnnpack and reference",
                  kernels));
}

/// Answers that are no text are left out: at worst they are found again.
engine::Choices parse_choices(const std::string& text) {
  engine::Choices choices;
  if (text.empty()) return choices;
  const auto document = core::parse_json(text, "choices");
  if (!document || !document->is_object()) return choices;
  for (const auto& [question, answer] : document->items()) {
    if (answer.is_string()) choices[question] = answer.get<std::string>();
  }
  return choices;
}

class EngineRuntime final : public Runtime {
 public:
  Result<RuntimeInfo> info() override {
    return RuntimeInfo{"fleetfit", std::string(core::version()), engine::kernel_identity()};
  }

  Result<LoadedModel> load(const std::filesystem::path& model,
                           const LoadOptions& options) override {
    program_.reset();
    FLEETFIT_ASSIGN(const auto library, parse_library(options.kernels));
    FLEETFIT_ASSIGN(const auto imported, graph::import_model(model));
    auto program =
        engine::Program::prepare(imported.graph, {.threads = options.threads,
                                                  .library = library,
                                                  .known = parse_choices(options.known_choices)});
    if (!program) return core::within(model.filename().string(), program.error());
    program_ = std::move(*program);
    FLEETFIT_TRY(fill_inputs(imported.graph));
    nlohmann::json choices = program_->used_choices();
    choices.update(nlohmann::json(program_->new_choices()));
    return LoadedModel{.choices = core::format_json_line(choices)};
  }

  Result<RunTimes> run(int runs, bool per_operator) override {
    if (!program_) return no_model();
    RunTimes times;
    times.ms.reserve(static_cast<std::size_t>(runs));
    program_->reset_times();
    for (int i = 0; i < runs; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const auto status = per_operator ? program_->run_timed() : program_->run();
      const auto end = std::chrono::steady_clock::now();
      FLEETFIT_TRY(status);
      times.ms.push_back(std::chrono::duration<double, std::milli>(end - start).count());
    }
    if (per_operator) {
      for (auto& step : program_->step_times()) {
        times.operators.push_back(
            {std::move(step.name), std::move(step.type), std::move(step.kernel), step.mean_ms});
      }
    }
    times.peak_memory_bytes = core::peak_memory_bytes();
    return times;
  }

  Result<std::vector<NamedValue>> compute(std::span<const NamedValue> inputs) override {
    if (!program_) return no_model();
    for (std::size_t i = 0; i < program_->inputs().size(); ++i) {
      const auto& port = program_->inputs()[i];
      const auto given = std::ranges::find(inputs, port.name, &NamedValue::name);
      if (given == inputs.end()) {
        return fail(ErrorCode::invalid_input, fmt::format("input '{}' is missing", port.name));
      }
      FLEETFIT_TRY(program_->set_input(i, given->value));
    }
    FLEETFIT_TRY(program_->run());
    std::vector<NamedValue> outputs;
    for (std::size_t i = 0; i < program_->outputs().size(); ++i) {
      outputs.push_back({program_->outputs()[i].name, program_->output_value(i)});
    }
    return outputs;
  }

  Status unload() override {
    program_.reset();
    return {};
  }

 private:
  static tl::unexpected<Error> no_model() {
    return fail(ErrorCode::invalid_input, "no model is loaded");
  }

  Status fill_inputs(const graph::Graph& graph) {
    const auto values = random_inputs(graph, kInputSeed);
    for (std::size_t i = 0; i < values.size(); ++i) {
      FLEETFIT_TRY(program_->set_input(i, values[i]));
    }
    return {};
  }

  std::optional<engine::Program> program_;
};

}  // namespace

std::unique_ptr<Runtime> make_engine_runtime() { return std::make_unique<EngineRuntime>(); }

}  // namespace fleetfit::measure
