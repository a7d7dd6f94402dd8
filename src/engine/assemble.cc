#include "engine/assemble.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "engine/choose.h"
#include "engine/memory_plan.h"
#include "engine/plan.h"
#include "engine/threads.h"

namespace fleetfit::engine {
namespace {

using Clock = std::chrono::steady_clock;
using Assembled = Result<std::unique_ptr<PreparedProgram>>;

/// Asking the system for more than there is may end the process instead of failing.
Status check_memory(std::size_t needed) {
  const auto there = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  if (needed <= there) return {};
  constexpr double kMega = 1e6;
  return fail(
      ErrorCode::invalid_input,
      fmt::format("the network needs {:.0f} MB of memory for its tensors, and there are {:.0f}",
                  static_cast<double>(needed) / kMega, static_cast<double>(there) / kMega));
}

/// Puts a plan's kernels and memory together.
class Assembler {
 public:
  Assembler(Plan plan, Chooser& chooser) : plan_(std::move(plan)), chooser_(chooser) {}

  Result<std::unique_ptr<PreparedProgram>> assemble(int threads);

 private:
  Status choose_kernels(PreparedProgram& state);
  void bind(PreparedProgram& state);
  std::byte* memory_of(const PreparedProgram& state, int tensor) const {
    if (tensor < 0 || plan_.tensors[index(tensor)].operand.constant) return nullptr;
    return state.arena.data() + memory_.offsets[index(tensor)];
  }
  void connect_ports(PreparedProgram& state);

  Plan plan_;
  Chooser& chooser_;
  MemoryPlan memory_;
};

Result<std::unique_ptr<PreparedProgram>> Assembler::assemble(int threads) {
  auto state = std::make_unique<PreparedProgram>();
  state->threads = threads;
  if (auto status = check_memory(plan_memory(plan_).bytes); !status) {
    return tl::unexpected(status.error());
  }
  FLEETFIT_TRY(choose_kernels(*state));
  bind(*state);
  connect_ports(*state);
  return state;
}

Status Assembler::choose_kernels(PreparedProgram& state) {
  for (PlannedStep& step : plan_.steps) {
    auto kernel = chooser_.kernel_for(step.task);
    if (!kernel) {
      return fail(ErrorCode::unsupported, graph::describe(step.task.node) + " has no kernel here");
    }
    if (const auto shared = kernel->output_shares_input()) {
      // What is added to lies where the result goes.
      plan_.tensors[index(step.inputs[*shared])].inside = Place{step.outputs[0], 0};
    }
    state.steps.push_back(
        {std::move(kernel), step.name, std::string(graph::type_name(step.task.node.op))});
  }
  return {};
}

void Assembler::bind(PreparedProgram& state) {
  memory_ = plan_memory(plan_);
  std::size_t scratch = 0;
  for (const Step& step : state.steps) scratch = std::max(scratch, step.kernel->scratch_bytes());
  state.arena = AlignedMemory(memory_.bytes + scratch);
  for (std::size_t i = 0; i < state.steps.size(); ++i) {
    Bindings bindings{.scratch = state.arena.data() + memory_.bytes};
    for (const int tensor : plan_.steps[i].inputs)
      bindings.inputs.push_back(memory_of(state, tensor));
    for (const int tensor : plan_.steps[i].outputs)
      bindings.outputs.push_back(memory_of(state, tensor));
    state.steps[i].kernel->bind(bindings);
  }
}

void Assembler::connect_ports(PreparedProgram& state) {
  for (const int tensor : plan_.inputs) {
    state.input_memory.emplace_back(memory_of(state, tensor),
                                    storage_bytes(plan_.tensors[index(tensor)].operand));
  }
  for (const int tensor : plan_.outputs) {
    const Operand& operand = plan_.tensors[index(tensor)].operand;
    if (operand.constant) {
      const auto bytes = operand.constant->bytes();
      std::ranges::copy(bytes, state.constants.emplace_back(bytes.size()).data());
      state.output_memory.emplace_back(state.constants.back().data(), bytes.size());
    } else {
      state.output_memory.emplace_back(memory_of(state, tensor), storage_bytes(operand));
    }
  }
}

Fusing fusing_for(Library library) {
  if (library == Library::reference) return Fusing::nothing;
  return library == Library::xnnpack ? Fusing::shuffles : Fusing::all;
}

Assembled assemble_in(const graph::Graph& simplified, ImageLayout layout,
                      const EngineOptions& options, Chooser& chooser) {
  const auto attempt = [&](Fusing fusing) -> Assembled {
    FLEETFIT_ASSIGN(auto plan, make_plan(simplified, layout, fusing, options.threads));
    return Assembler(std::move(plan), chooser).assemble(options.threads);
  };
  auto assembled = attempt(fusing_for(options.library));
  if (assembled || assembled.error().code != ErrorCode::unsupported) return assembled;
  return attempt(Fusing::nothing);  // no kernel does at once what was fused
}

std::string question_of(const graph::Graph& graph, int threads) {
  std::string text;
  for (const auto& node : graph.nodes) {
    text += graph::type_name(node.op);
    for (const auto id : node.outputs) {
      if (id != graph::kNoTensor) text += graph::to_string(*graph.tensor(id).shape);
    }
  }
  return fmt::format("layout of {} nodes {:016x} t{}", graph.nodes.size(),
                     std::hash<std::string>{}(text), threads);
}

/// How long a run takes when nothing else disturbs it: the sum of the shortest times of its steps.
/// A whole run is seldom left alone on a busy machine, a step often is.
class UndisturbedTime {
 public:
  explicit UndisturbedTime(PreparedProgram& program)
      : program_(program), shortest_(program.steps.size(), Clock::duration::max()) {}

  /// Runs once more and returns the best that is known so far.
  double seconds() {
    use_threads(program_.threads);
    auto before = Clock::now();
    Clock::duration sum{0};
    for (std::size_t i = 0; i < shortest_.size(); ++i) {
      if (!program_.steps[i].kernel->run()) return std::numeric_limits<double>::infinity();
      const auto after = Clock::now();
      shortest_[i] = std::min(shortest_[i], after - before);
      sum += shortest_[i];
      before = after;
    }
    return std::chrono::duration<double>(sum).count();
  }

 private:
  PreparedProgram& program_;
  std::vector<Clock::duration> shortest_;
};

/// Tries both layouts of images and keeps the faster program.
Assembled assemble_fastest(const graph::Graph& simplified, const EngineOptions& options,
                           Chooser& chooser) {
  const bool blocks = options.library == Library::automatic || options.library == Library::onednn;
  if (!blocks || options.choosing == Choosing::fixed || !has_float_convolution(simplified)) {
    return assemble_in(simplified, ImageLayout::channels_last, options, chooser);
  }
  const std::vector<std::string> labels{"channels last", "blocked"};
  const std::string question = question_of(simplified, options.threads);
  const auto layout_of = [](std::size_t i) {
    return i == 0 ? ImageLayout::channels_last : ImageLayout::blocked;
  };
  if (const auto known = chooser.known_answer(question)) {
    return assemble_in(simplified, layout_of(*known == labels[1] ? 1 : 0), options, chooser);
  }
  std::vector<std::unique_ptr<PreparedProgram>> states;
  std::vector<UndisturbedTime> times;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    auto state = assemble_in(simplified, layout_of(i), options, chooser);
    // In blocks some convolutions of few channels have no kernel; in the other layout all have.
    if (!state && i > 0 && state.error().code == ErrorCode::unsupported) {
      return std::move(states[0]);
    }
    if (!state) return state;
    states.push_back(std::move(*state));
    times.emplace_back(*states.back());
    times.back().seconds();  // warms up
  }
  const auto best =
      chooser.fastest(question, labels, [&](std::size_t i) { return times[i].seconds(); });
  return std::move(states[best == labels[1] ? 1 : 0]);
}

}  // namespace

Status PreparedProgram::run() {
  use_threads(threads);
  for (Step& step : steps) {
    if (auto status = step.kernel->run(); !status) return core::within(step.name, status.error());
  }
  return {};
}

Result<std::unique_ptr<PreparedProgram>> assemble(const graph::Graph& simplified,
                                                  const EngineOptions& options) {
  Chooser chooser(options);
  auto prepared = assemble_fastest(simplified, options, chooser);
  if (!prepared) return prepared;
  (*prepared)->found = chooser.found();
  (*prepared)->used = chooser.used();
  return prepared;
}

}  // namespace fleetfit::engine
