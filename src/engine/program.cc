#include "fleetfit/engine/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/assemble.h"
#include "engine/check.h"
#include "engine/plan.h"
#include "engine/threads.h"

namespace fleetfit::engine {
namespace {

Port port(const graph::Graph& graph, graph::TensorId id) {
  const auto& tensor = graph.tensor(id);
  return {tensor.name, tensor.dtype, *tensor.shape, tensor.quantization};
}

}  // namespace

Result<Program> Program::prepare(const graph::Graph& graph, const EngineOptions& options) {
  if (options.threads < 1) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a program cannot run on {} threads", options.threads));
  }
  for (const auto check : {graph::validate, check_inputs, check_weights}) {
    FLEETFIT_TRY(check(graph));
  }
  FLEETFIT_ASSIGN(auto simplified, simplify_for_engine(graph));
  for (const auto check : {graph::validate, check_operators, check_weights}) {
    FLEETFIT_TRY(check(simplified));
  }
  use_threads(options.threads);
  FLEETFIT_ASSIGN(auto state, assemble(simplified, options));
  for (const auto id : graph.inputs) state->inputs.push_back(port(graph, id));
  for (const auto id : simplified.outputs) state->outputs.push_back(port(simplified, id));
  return Program(std::move(state));
}

Program::Program(std::unique_ptr<PreparedProgram> state) : state_(std::move(state)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

std::span<const Port> Program::inputs() const { return state_->inputs; }
std::span<const Port> Program::outputs() const { return state_->outputs; }

std::span<std::byte> Program::input(std::size_t i) { return state_->input_memory[i]; }
std::span<const std::byte> Program::output(std::size_t i) const { return state_->output_memory[i]; }

Status Program::set_input(std::size_t i, const graph::Value& value) {
  if (i >= state_->inputs.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("there is no input {}: the program has {}", i, state_->inputs.size()));
  }
  const Port& port = state_->inputs[i];
  if (value.dtype != port.dtype || value.shape != port.shape) {
    return fail(ErrorCode::invalid_input,
                fmt::format("input '{}' is to be {} {} and is {} {}", port.name,
                            graph::to_string(port.dtype), graph::to_string(port.shape),
                            graph::to_string(value.dtype), graph::to_string(value.shape)));
  }
  if (value.data.size_bytes() != input(i).size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("input '{}' takes {} bytes and is given {}", port.name, input(i).size(),
                            value.data.size_bytes()));
  }
  value.data.copy_to(input(i));
  return {};
}

graph::Value Program::output_value(std::size_t i) const {
  const Port& port = state_->outputs[i];
  const auto bytes = output(i);
  return {port.dtype, port.shape, graph::TensorData::own({bytes.begin(), bytes.end()}),
          port.quantization};
}

Status Program::run() { return state_->run(); }

Status Program::run_timed() {
  use_threads(state_->threads);
  auto before = std::chrono::steady_clock::now();
  for (Step& step : state_->steps) {
    if (auto status = step.kernel->run(); !status) return core::within(step.name, status.error());
    const auto after = std::chrono::steady_clock::now();
    step.time += after - before;
    before = after;
  }
  ++state_->timed_runs;
  return {};
}

std::vector<StepTime> Program::step_times() const {
  std::vector<StepTime> times;
  const auto runs = static_cast<double>(std::max<std::int64_t>(state_->timed_runs, 1));
  for (const Step& step : state_->steps) {
    const double ms = std::chrono::duration<double, std::milli>(step.time).count() / runs;
    times.push_back({step.name, step.type, step.kernel->name(), ms});
  }
  return times;
}

void Program::reset_times() {
  for (Step& step : state_->steps) step.time = std::chrono::steady_clock::duration::zero();
  state_->timed_runs = 0;
}

std::size_t Program::arena_bytes() const { return state_->arena.size(); }

std::size_t Program::weight_bytes() const {
  std::size_t bytes = 0;
  for (const Step& step : state_->steps) bytes += step.kernel->weight_bytes();
  return bytes;
}

const Choices& Program::new_choices() const { return state_->found; }

const Choices& Program::used_choices() const { return state_->used; }

}  // namespace fleetfit::engine
