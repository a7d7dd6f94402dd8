#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/learned/model.h"
#include "fleetfit/learned/networks.h"
#include "fleetfit/train/images.h"

/// Fits of the networks that learn to optimize, described without torch's types.
namespace fleetfit::train {

/// Called now and then with the share that is done; false: stop soon.
using FitProgress = std::function<bool(double share)>;

/// What a network over designs is fitted to: outputs x device = number, for each design on each
/// device. An accuracy is a cost on one device whose only input is 1.
struct DesignFitData {
  std::size_t columns = 0;
  std::vector<float> designs = {};  ///< a row of columns for each design
  std::size_t outputs = 1;
  std::vector<float> devices = {};  ///< a row of `outputs` for each device; the first is 1
  std::vector<float> numbers = {};  ///< a row of designs for each device; NaN: not known
  /// What is added to the mean squared error for each square of an output but the first.
  double ridge = 0;
};

struct DesignFitOptions {
  std::vector<std::size_t> widths = {96};  ///< of hidden layers
  std::size_t steps = 2500;
  std::size_t batch = 256;
  double rate = 4e-3;
  double decay = 0.02;
  Compute compute = Compute::cpu;
};

/// `cancelled` if it was to stop.
Result<learned::DesignNetwork::Parts> fit_design_network(const DesignFitData& data,
                                                         const DesignFitOptions& options,
                                                         const core::Random& random,
                                                         const FitProgress& progress);

struct OptimizerFitOptions {
  std::size_t width = 64;
  std::size_t steps = 3000;
  std::size_t batch = 256;
  double rate = 3e-3;
  double decay = 0.01;
  Compute compute = Compute::cpu;
};

/// Rows of inputs with the best design of each.
struct OptimizerLessons {
  const space::Space* space = nullptr;
  std::size_t inputs = 0;
  std::vector<float> rows = {};
  space::Population best = space::Population(1);
};

/// Method 1: the network is to give the best designs the highest probability.
Result<learned::OptimizerNetwork::Parts> fit_optimizer_to_best(const OptimizerLessons& lessons,
                                                               const OptimizerFitOptions& options,
                                                               const core::Random& random,
                                                               const FitProgress& progress);

/// Devices and goals, row by row, for the method that needs no best designs.
struct OptimizerTasks {
  const learned::Model* model = nullptr;
  std::vector<learned::DeviceVector> devices = {};
  std::vector<learned::Goal> goals = {};
};

/// Method 2: what is drawn from the network is judged by the frozen performance networks, whose
/// gradient goes back through the drawn choices as if they had been shares (straight through).
/// Temperature falls, the penalty of broken limits grows.
Result<learned::OptimizerNetwork::Parts> fit_optimizer_through(const OptimizerTasks& tasks,
                                                               const OptimizerFitOptions& options,
                                                               const core::Random& random,
                                                               const FitProgress& progress);

}  // namespace fleetfit::train
