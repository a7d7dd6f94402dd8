#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/aligned_memory.h"
#include "engine/kernel.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::engine {

struct Step {
  KernelPtr kernel;
  std::string name;
  std::string type;
  std::chrono::steady_clock::duration time{0};  ///< of all timed runs
};

/// Kernels bound to one arena.
struct PreparedProgram {
  int threads = 1;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Step> steps;
  AlignedMemory arena{0};
  std::vector<std::span<std::byte>> input_memory;
  std::vector<std::span<const std::byte>> output_memory;
  std::vector<AlignedMemory> constants;  ///< outputs that are the same in every run
  std::int64_t timed_runs = 0;
  Choices found;
  Choices used;

  Status run();
};

/// Chooses kernels and layout for a graph that was simplified and checked, and binds them. Ports
/// are left to the caller.
Result<std::unique_ptr<PreparedProgram>> assemble(const graph::Graph& simplified,
                                                  const EngineOptions& options);

}  // namespace fleetfit::engine
