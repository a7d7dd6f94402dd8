#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleetfit/predict/tree_model.h"

namespace fleetfit::predict {

/// What XGBoost is given. Borrows everything.
struct BoostRows {
  std::size_t columns = 0;
  std::span<const float> x = {};
  std::span<const float> target = {};
};

/// How many thresholds a feature is tried at.
enum class Splits {
  as_time_allows,  ///< all of them if there are few rows
  all,
};

struct BoostSettings {
  int stages = 200;
  int trees_per_stage = 1;  ///< grown side by side; a stage is their mean
  int depth = 6;
  double least_child_weight = 1;
  double learning_rate = 0.1;
  double subsample = 1;  ///< share of the rows that each tree sees
  double leaf_penalty = 1;
  std::uint32_t seed = 0;
  float base = 0;
  Splits splits = Splits::as_time_allows;
};

/// The trees that XGBoost grows for the squared error, on one thread. Fails with `internal` and
/// XGBoost's words.
Result<std::vector<TreeModel::Tree>> grow_trees(const BoostRows& rows,
                                                const BoostSettings& settings);

/// What XGBoost itself answers for rows of `trained.columns` features after the same training.
Result<std::vector<float>> answers_of_xgboost(const BoostRows& trained,
                                              const BoostSettings& settings,
                                              std::span<const float> x);

}  // namespace fleetfit::predict
