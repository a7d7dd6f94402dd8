#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/kernel.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::engine {

/// Finds kernels for tasks, and remembers what was found by measuring.
class Chooser {
 public:
  explicit Chooser(const EngineOptions& options) : options_(options) {}

  /// The best kernel for a task, or nothing if no library has one.
  KernelPtr kernel_for(const Task& task);

  std::optional<std::string> known_answer(const std::string& question);

  /// The fastest of several ways to do something, by its label: known already, or measured by
  /// calling `seconds` (several times each, taking turns), or the first if nothing is to be
  /// measured.
  std::string fastest(const std::string& question, const std::vector<std::string>& labels,
                      const std::function<double(std::size_t)>& seconds);

  const Choices& found() const { return found_; }

  /// Of those that were known before, the ones that were asked for.
  const Choices& used() const { return used_; }

 private:
  EngineOptions options_;
  Choices found_;
  Choices used_;
};

/// A text that is the same for tasks that take the same time.
std::string describe_task(const Task& task);

}  // namespace fleetfit::engine
