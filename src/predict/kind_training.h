#pragma once

#include <optional>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/predict/operator_predictor.h"
#include "predict/kernel_rows.h"

/// The model of one kind of kernels.
namespace fleetfit::predict {

/// The box around rows, empty before the first.
struct Box {
  std::vector<double> low;
  std::vector<double> high;

  void add(std::span<const double> row) {
    if (low.empty()) {
      low.assign(row.begin(), row.end());
      high = low;
    }
    for (std::size_t j = 0; j < row.size(); ++j) {
      low[j] = std::min(low[j], row[j]);
      high[j] = std::max(high[j], row[j]);
    }
  }
};

/// Of all rows, or of those of other folds than one.
Box box_of(const KernelRows& rows, int left_out = -1);

/// What the models of all kinds have in common. Borrows everything.
struct KindTraining {
  const TrainOptions& options;
  const core::Random& random;
  const Profiles& profiles;
  const LinearModel& generic;  ///< of all kinds
  double generic_spread90 = 0;
  core::ThreadPool& pool;
};

/// Whether models by this method are wanted, alone or among others.
bool wants(const TrainOptions& options, Method method);

/// Whether there are too few kernels to say what the kind depends on.
bool is_few(const KernelRows& rows);

/// Whether there are too few kernels for more than a line.
bool is_few_for_trees(const KernelRows& rows);

/// A kind's model with what the network's calibration needs of it.
struct TrainedKind {
  KindModel model;
  std::vector<double> out_of_fold;
};

/// `dense` is the kind's dense network, if there is one. Fails, naming the kind, as the fits do.
Result<TrainedKind> train_kind(const KindTraining& training, const KernelRows& rows,
                               std::optional<FittedRegressor> dense);

}  // namespace fleetfit::predict
