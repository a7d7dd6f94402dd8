#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/predict/operator_predictor.h"
#include "fleetfit/predict/regressor.h"
#include "fleetfit/predict/samples.h"

/// Profiles as matrices.
namespace fleetfit::predict {

/// All kernels of one kind.
struct KernelRows {
  std::string kind = {};
  std::vector<Condition> when = {};
  std::size_t columns = 0;
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<int> fold = {};
  std::vector<int> network = {};  ///< that the kernel is of

  MatrixView rows() const { return {.values = x, .columns = columns}; }
  TrainingSet set(int folds) const { return {.x = rows(), .y = y, .fold = fold, .folds = folds}; }
  void add(std::span<const double> row, double ms, int of_network, int in_fold);
  /// Row number i of others.
  void add(const KernelRows& others, std::size_t i) {
    add(others.rows().row(i), others.y[i], others.network[i], others.fold[i]);
  }
  /// Without the features that only this kind has.
  KernelRows generic() const;
  int networks() const;
};

/// Profiled networks, made ready for training.
struct Profiles {
  std::vector<KernelRows> kinds = {};  ///< sorted by kind
  Overhead overhead = {};
  std::vector<double> latency_ms = {};    ///< by network
  std::vector<std::size_t> kernels = {};  ///< number of them
  std::vector<int> fold = {};
  int folds = 0;
};

/// Scales the kernels of each network so that with the overhead they add up to its latency, and
/// deals the networks out to folds.
Profiles gather(std::span<const NetworkSample> samples, int folds, core::Random random);

/// The parts of a kind that are priced by different laws: split by a feature with few values, or by
/// whether it is zero, wherever two lines explain times much better than one. One part if not.
std::vector<KernelRows> split_by_law(KernelRows rows, int folds);

/// Non-negative least squares of the overheads, relative to the latencies.
Overhead fit_overhead(std::span<const NetworkSample> samples);

/// At most `count` of the rows, each as far from the others as can be.
std::vector<KindModel::Known> spread_out(const KernelRows& rows, std::size_t count);

}  // namespace fleetfit::predict
