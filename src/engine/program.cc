#include "fleetfit/engine/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "engine/assemble.h"
#include "engine/plan.h"
#include "engine/threads.h"

namespace fleetfit::engine {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::Tensor;

std::string why_not_storable(const Tensor& tensor) {
  if (tensor.dtype == DType::unknown) return "has no known type";
  if (tensor.dtype == DType::text) return "holds text";
  if (!tensor.shape) return "has no shape that is known before it runs";
  return "";
}

template <class T>
std::optional<std::ptrdiff_t> first_nan(std::span<const T> values) {
  // A sum of zeros times the values is zero unless one of them is no finite number.
  T sum = 0;
  for (const T value : values) sum += value * T{0};
  if (sum == T{0}) return std::nullopt;
  const auto found = std::ranges::find_if(values, [](T value) { return std::isnan(value); });
  if (found == values.end()) return std::nullopt;
  return found - values.begin();
}

/// The first element that has every bit of the exponent set and some bit of the mantissa.
std::optional<std::ptrdiff_t> first_nan_of_16_bits(std::span<const std::uint16_t> values,
                                                   std::uint16_t infinity) {
  constexpr std::uint16_t kWithoutSign = 0x7FFF;
  const auto found = std::ranges::find_if(
      values, [&](std::uint16_t bits) { return (bits & kWithoutSign) > infinity; });
  if (found == values.end()) return std::nullopt;
  return found - values.begin();
}

std::optional<std::ptrdiff_t> first_nan(const Tensor& tensor) {
  constexpr std::uint16_t kInfinityOfHalf = 0x7C00;
  constexpr std::uint16_t kInfinityOfBrainFloat = 0x7F80;
  if (tensor.dtype == DType::f32) return first_nan(tensor.data->as<float>());
  if (tensor.dtype == DType::f64) return first_nan(tensor.data->as<double>());
  if (tensor.dtype == DType::f16)
    return first_nan_of_16_bits(tensor.data->as<std::uint16_t>(), kInfinityOfHalf);
  if (tensor.dtype == DType::bf16)
    return first_nan_of_16_bits(tensor.data->as<std::uint16_t>(), kInfinityOfBrainFloat);
  return std::nullopt;
}

bool is_untold(const Graph& graph, graph::TensorId id) {
  return id != graph::kNoTensor && !why_not_storable(graph.tensor(id)).empty();
}

/// Whether every input has a type and a shape, and holds something.
Status check_inputs(const Graph& graph) {
  for (const auto id : graph.inputs) {
    const Tensor& tensor = graph.tensor(id);
    if (const std::string why = why_not_storable(tensor); !why.empty()) {
      return fail(ErrorCode::invalid_input, fmt::format("input '{}' {}", tensor.name, why));
    }
    if (graph::elements(*tensor.shape) == 0) {
      return fail(ErrorCode::invalid_input, fmt::format("input '{}' is empty: {}", tensor.name,
                                                        graph::to_string(*tensor.shape)));
    }
  }
  return {};
}

/// Whether no weight is NaN.
Status check_weights(const Graph& graph) {
  for (const Tensor& tensor : graph.tensors) {
    if (!tensor.data) continue;
    if (const auto place = first_nan(tensor)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("weight '{}' is not a number at element {}", tensor.name, *place));
    }
  }
  return {};
}

/// Whether every operator is known and every tensor has a type and a shape. The error lists all
/// operators that are to blame.
Status check_operators(const Graph& graph) {
  std::vector<std::string> unsupported;
  for (const Node& node : graph.nodes) {
    // What follows from another node's fault is not listed again.
    const bool follows =
        std::ranges::any_of(node.inputs, [&](graph::TensorId id) { return is_untold(graph, id); });
    const std::string why = why_not_runnable(graph, node);
    if (why.empty() || (follows && !std::holds_alternative<graph::Unknown>(node.op))) continue;
    unsupported.push_back(describe(node) + ": " + why);
  }
  if (unsupported.empty()) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("{} {} cannot be run: {}", unsupported.size(),
                          unsupported.size() == 1 ? "operator" : "operators",
                          fmt::join(unsupported, "; ")));
}

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

std::string why_not_runnable(const Graph& graph, const Node& node) {
  if (const auto* unknown = std::get_if<graph::Unknown>(&node.op)) return unknown->reason;
  for (const auto id : node.outputs) {
    if (!is_untold(graph, id)) continue;
    const Tensor& tensor = graph.tensor(id);
    return fmt::format("tensor '{}' {}", tensor.name, why_not_storable(tensor));
  }
  return "";
}

}  // namespace fleetfit::engine
