#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/tune/parameters.h"

namespace fleetfit::bench {

/// Something to minimize whose smallest value is known.
struct Function {
  std::string name = {};
  bool is_benchmark = true;  ///< otherwise one of those that samplers may be tuned on
  tune::Parameters parameters = {};
  std::size_t evaluations = 0;
  double optimum = 0;
  std::function<double(std::span<const double>)> value = {};
  /// With two fidelities: epochs of each, and what is seen after those of the lower one.
  std::vector<double> levels = {};
  std::function<double(std::span<const double>)> low_fidelity = {};
};

/// The functions that a file lists (bench/tune_functions.json). `data` holds the tables of
/// NAS-Bench-201.
Result<std::vector<Function>> read_functions(const std::filesystem::path& file,
                                             const std::filesystem::path& data);

}  // namespace fleetfit::bench
