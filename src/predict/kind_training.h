#pragma once

#include <optional>
#include <span>
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

/// Latencies of networks as models predict them that did not see the network, and as they were
/// measured, each network with its fold of cross-validation.
struct HeldOutNetworks {
  std::span<const double> predicted_ms;
  std::span<const double> measured_ms;
  std::span<const int> fold;
  int folds = 0;
};

struct FittedShortNetworks {
  ShortNetworks law;
  /// Of each network, by a law that was fitted without its fold: what later networks will get is
  /// as good as these, not as good as what the law says of those that it was fitted to.
  std::vector<double> held_out_factor;
};

/// How much faster the kernels of short networks are. No law, and factors of 1, where they are not
/// or where networks are too few to tell.
FittedShortNetworks fit_short_networks(const HeldOutNetworks& networks);

}  // namespace fleetfit::predict
