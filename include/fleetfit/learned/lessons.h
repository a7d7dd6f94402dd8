#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/learned/model.h"
#include "fleetfit/learned/samples.h"

/// The parts of training that need no gradients: what networks are to learn, and how far they can
/// be trusted afterwards. fleetfit-train does the rest.
namespace fleetfit::learned {

/// The fold of each device. Devices that behave alike are in one fold, so that what is held out is
/// new to those who learn from the others.
std::vector<std::size_t> device_folds(const Samples& samples, std::size_t folds);

/// The ridge (relative to the mean square of a device's inputs) with which a linear fit on the
/// devices' inputs predicts the first cost best on devices of a fold that it was not fitted to.
Result<double> choose_ridge(const Samples& samples, std::span<const std::size_t> folds);

/// ln of a cost relative to each device's level, a row of designs for each device, as numbers for
/// a network: (value - offset) / scale. NaN where it was not measured, and for designs without a
/// way from input to output.
struct CostTargets {
  double offset = 0;
  double scale = 1;
  std::vector<float> numbers = {};
};
CostTargets cost_targets(const Samples& samples, std::size_t cost,
                         std::span<const DeviceVector> devices);

/// Accuracies as numbers for a network: asinh((value - centre) / scale).
struct AccuracyTargets {
  double centre = 0;
  double scale = 1;
  double spread90 = 1;
  std::vector<float> numbers = {};
};
AccuracyTargets accuracy_targets(const Samples& samples);

/// Reads each device of the samples.
Result<std::vector<DeviceVector>> read_devices(const DeviceInputs& inputs, const Samples& samples);

/// Fills in the rank correlations of the costs, from members that did not see a device: member m of
/// each cost was trained without the devices of fold m. Margins and usual spreads come from a
/// rehearsal with each fold in turn as new devices. `ridge` is what the networks were held by.
void calibrate(Model::Parts& parts, const Samples& samples, std::span<const std::size_t> folds,
               double ridge, core::ThreadPool& pool);

/// Fills in `typical` of the members.
void fill_in_typical(Model::Parts& parts, std::uint64_t seed);

/// A device and what is wanted for it, with the design that a search found best.
struct Task {
  DeviceVector device = {};
  Goal goal = {};
  std::vector<space::Choice> best = {};
};

struct TaskOptions {
  std::size_t devices = 1500;    ///< real ones, again and again, and synthetic ones
  std::size_t goals = 12;        ///< for each device
  double synthetic_share = 0.8;  ///< of the devices
  std::size_t small = 50'000;    ///< a space of so many designs is searched to the end
  std::size_t pool = 20'000;     ///< designs to begin with, in a larger one
  std::size_t rounds = 6;        ///< of improving the pool, in such a space
  bool wants_best = true;        ///< whether to search
  std::uint64_t seed = 1;
};

/// Devices between and around the known ones: mixtures of a few of them in their logarithms, with
/// some noise.
DeviceVector synthetic_device(const DeviceInputs& inputs, std::span<const DeviceVector> known,
                              core::Random& random);

/// Tasks for optimizer networks: limits spread over the range of costs, and weights. Small spaces
/// are searched to the end; in a larger one all devices share a population that evolves towards
/// what is best for any of them.
std::vector<Task> make_tasks(const Model& model, const Samples& samples,
                             std::span<const DeviceVector> known, const TaskOptions& options,
                             core::ThreadPool& threads);

/// Which of `candidates` to measure next on all devices: those on which the members disagree the
/// most, and which are unlike each other. At most `count` places, the most useful first.
std::vector<std::size_t> choose_exploration(const Model& model,
                                            std::span<const DeviceVector> devices,
                                            space::DesignBatch candidates, std::size_t count);

}  // namespace fleetfit::learned
