#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "fleetfit/core/parallel.h"
#include "fleetfit/predict/linear_model.h"
#include "fleetfit/predict/tree_model.h"
#include "predict/regressors/xgboost_training.h"

namespace fleetfit::predict {
namespace {

// Deep enough for trees to end by themselves; XGBoost wants a limit.
constexpr int kDeepest = 30;

// The forest of the rows outside of one fold; of all rows for -1, or if no others are left.
Result<TreeModel> grow_forest(const TrainingSet& set, int outside, const ForestOptions& options,
                              double least_child_samples, std::uint32_t seed) {
  std::vector<float> x;
  std::vector<float> target;
  for (std::size_t i = 0; i < set.y.size(); ++i) {
    if (set.fold[i] == outside) continue;
    for (const double value : set.x.row(i)) x.push_back(static_cast<float>(value));
    target.push_back(static_cast<float>(std::log(set.y[i])));
  }
  if (target.empty()) return grow_forest(set, -1, options, least_child_samples, seed);
  const float base =
      std::accumulate(target.begin(), target.end(), 0.0F) / static_cast<float>(target.size());
  FLEETFIT_ASSIGN(const auto trees, grow_trees({.columns = set.x.columns, .x = x, .target = target},
                                               {.stages = 1,
                                                .trees_per_stage = options.trees,
                                                .depth = kDeepest,
                                                .least_child_weight = least_child_samples,
                                                .learning_rate = 1,
                                                .subsample = options.subsample,
                                                .leaf_penalty = 0,
                                                .seed = seed,
                                                .base = base,
                                                .splits = Splits::all}));
  return TreeModel::build(trees,
                          {.features = set.x.columns, .link = Link::logarithm, .base = base});
}

// Writes what a forest without the fold says of the fold's rows.
Status predict_fold(const TrainingSet& set, int fold, const ForestOptions& options,
                    double least_child_samples, std::uint32_t seed, std::vector<double>& out) {
  FLEETFIT_ASSIGN(const auto forest, grow_forest(set, fold, options, least_child_samples, seed));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (set.fold[i] == fold) out[i] = forest.predict_one(set.x.row(i));
  return {};
}

// A linear price below this share of the time is taken as this share: logarithms need it.
constexpr double kLeastShare = 1e-3;

struct Setting {
  int depth = 6;
  double least_child_samples = 1;
  double leaf_penalty = 1;
};

std::vector<Setting> grid_of(const BoostOptions& options) {
  std::vector<Setting> grid;
  for (const int depth : options.depths)
    for (const double least : options.least_child_samples)
      for (const double penalty : options.leaf_penalties) grid.push_back({depth, least, penalty});
  return grid;
}

// The rows outside of one fold (or all of them), as XGBoost takes them.
struct Rows {
  std::vector<float> x = {};
  std::vector<float> target = {};
  float base = 0;
};

// A copy of some rows, with their folds.
struct Subset {
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<int> fold = {};
};

Subset rows_outside(const TrainingSet& set, int fold) {
  Subset subset;
  for (std::size_t i = 0; i < set.x.rows(); ++i) {
    if (set.fold[i] == fold) continue;
    const auto row = set.x.row(i);
    subset.x.insert(subset.x.end(), row.begin(), row.end());
    subset.y.push_back(set.y[i]);
    subset.fold.push_back(set.fold[i]);
  }
  return subset;
}

// Fits models to the rows outside of one fold, or to all of them.
class FoldBooster {
 public:
  /// `outside` is -1 for all rows.
  FoldBooster(const TrainingSet& set, const BoostOptions& options, int outside)
      : options_(options), columns_(set.x.columns), subset_(rows_outside(set, outside)) {
    if (subset_.y.empty()) subset_ = rows_outside(set, -1);
    folds_ = set.folds;
  }

  Status prepare() {
    if (corrects()) {
      FLEETFIT_ASSIGN(const auto fitted, fit_lasso({.x = {.values = subset_.x, .columns = columns_},
                                                    .y = subset_.y,
                                                    .fold = subset_.fold,
                                                    .folds = folds_}));
      linear_ = dynamic_cast<const LinearModel&>(*fitted.model);
    }
    fill_rows();
    return {};
  }

  /// The linear model that the trees correct; nothing if they stand alone.
  const LinearModel* linear() const { return corrects() ? &linear_ : nullptr; }

  Result<TreeModel> grow(const Setting& setting, int stages, std::uint32_t seed) const {
    FLEETFIT_ASSIGN(const auto trees,
                    grow_trees({.columns = columns_, .x = rows_.x, .target = rows_.target},
                               {.stages = stages,
                                .depth = setting.depth,
                                .least_child_weight = setting.least_child_samples,
                                .learning_rate = options_.learning_rate,
                                .subsample = options_.subsample,
                                .leaf_penalty = setting.leaf_penalty,
                                .seed = seed,
                                .base = rows_.base}));
    return TreeModel::build(trees,
                            {.features = columns_, .link = Link::logarithm, .base = rows_.base});
  }

 private:
  bool corrects() const { return options_.target == BoostTarget::correction; }

  double target(std::size_t i) const {
    if (!corrects()) return std::log(subset_.y[i]);
    const double price = linear_.predict_one(std::span(subset_.x).subspan(i * columns_, columns_));
    return std::log(subset_.y[i] / std::max(price, kLeastShare * subset_.y[i]));
  }

  void fill_rows() {
    rows_.x.assign(subset_.x.begin(), subset_.x.end());
    double sum = 0;
    for (std::size_t i = 0; i < subset_.y.size(); ++i) {
      rows_.target.push_back(static_cast<float>(target(i)));
      sum += target(i);
    }
    rows_.base = static_cast<float>(sum / static_cast<double>(subset_.y.size()));
  }

  const BoostOptions& options_;
  std::size_t columns_;
  Subset subset_;
  int folds_ = 0;
  LinearModel linear_{0, {}};
  Rows rows_;
};

class CrossValidation {
 public:
  CrossValidation(const TrainingSet& set, const BoostOptions& options, std::uint32_t seed)
      : set_(set), options_(options), seed_(seed), grid_(grid_of(options)) {
    const auto folds = static_cast<std::size_t>(set.folds);
    boosters_.reserve(folds);
    for (int fold = 0; fold < set.folds; ++fold) boosters_.emplace_back(set, options, fold);
    trees_.resize(grid_.size() * folds);
    errors_.assign(trees_.size(),
                   std::vector<double>(static_cast<std::size_t>(options.stages), 0.0));
  }

  Status run(core::ThreadPool& pool) {
    FLEETFIT_TRY(core::try_each(pool, boosters_.size(),
                                [&](std::size_t fold) { return boosters_[fold].prepare(); }));
    return core::try_each(pool, trees_.size(), [&](std::size_t task) { return run_task(task); });
  }

  /// The setting and the number of stages with the least error.
  std::pair<Setting, int> best() {
    double least = std::numeric_limits<double>::infinity();
    int best_stages = 1;
    for (std::size_t setting = 0; setting < grid_.size(); ++setting) {
      for (int stages = 1; stages <= options_.stages; ++stages) {
        const double error = error_of(setting, stages);
        if (error >= least) continue;
        least = error;
        chosen_ = setting;
        best_stages = stages;
      }
    }
    return {grid_[chosen_], best_stages};
  }

  std::vector<double> out_of_fold(int stages) const {
    std::vector<double> predictions(set_.x.rows());
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const auto fold = static_cast<std::size_t>(set_.fold[i]);
      const auto& trees = *trees_[task_of(chosen_, fold)];
      const auto staged = trees.staged(set_.x.row(i));
      predictions[i] = staged[static_cast<std::size_t>(stages) - 1] * factor(i, fold);
    }
    return predictions;
  }

 private:
  std::size_t task_of(std::size_t setting, std::size_t fold) const {
    return setting * boosters_.size() + fold;
  }

  double factor(std::size_t row, std::size_t fold) const {
    const auto* linear = boosters_[fold].linear();
    return linear == nullptr ? 1 : linear->predict_one(set_.x.row(row));
  }

  Status run_task(std::size_t task) {
    const std::size_t fold = task % boosters_.size();
    FLEETFIT_ASSIGN(auto trees,
                    boosters_[fold].grow(grid_[task / boosters_.size()], options_.stages, seed_));
    for (std::size_t i = 0; i < set_.x.rows(); ++i) {
      if (static_cast<std::size_t>(set_.fold[i]) != fold) continue;
      const auto staged = trees.staged(set_.x.row(i));
      const double scale = factor(i, fold) / set_.y[i];
      for (std::size_t s = 0; s < staged.size(); ++s)
        errors_[task][s] += std::abs(staged[s] * scale - 1);
    }
    trees_[task] = std::move(trees);
    return {};
  }

  double error_of(std::size_t setting, int stages) const {
    double sum = 0;
    for (std::size_t fold = 0; fold < boosters_.size(); ++fold)
      sum += errors_[task_of(setting, fold)][static_cast<std::size_t>(stages) - 1];
    return sum;
  }

  const TrainingSet& set_;
  const BoostOptions& options_;
  std::uint32_t seed_;
  std::vector<Setting> grid_;
  std::vector<FoldBooster> boosters_;            // by fold
  std::vector<std::optional<TreeModel>> trees_;  // by task
  std::vector<std::vector<double>> errors_;      // by task and stage
  std::size_t chosen_ = 0;
};

Result<std::unique_ptr<Regressor>> fit_to_all(const TrainingSet& set, const BoostOptions& options,
                                              const std::pair<Setting, int>& best,
                                              std::uint32_t seed) {
  FoldBooster booster(set, options, -1);
  FLEETFIT_TRY(booster.prepare());
  FLEETFIT_ASSIGN(auto trees, booster.grow(best.first, best.second, seed));
  if (booster.linear() == nullptr) return std::make_unique<TreeModel>(std::move(trees));
  return std::make_unique<ProductModel>(*booster.linear(), std::move(trees));
}

}  // namespace

Result<FittedRegressor> fit_forest(const TrainingSet& set, const core::Random& random,
                                   core::ThreadPool& pool, const ForestOptions& options) {
  FLEETFIT_TRY(check_set(set));
  if (options.trees < 1 || options.least_child_samples.empty())
    return refuse("a forest needs a tree and a child size");
  const auto seed = static_cast<std::uint32_t>(random.seed() & 0x7fffffffU);
  const auto& sizes = options.least_child_samples;
  const auto folds = static_cast<std::size_t>(set.folds);
  std::vector<std::vector<double>> predictions(sizes.size(), std::vector<double>(set.y.size()));
  FLEETFIT_TRY(core::try_each(pool, sizes.size() * folds, [&](std::size_t task) {
    const std::size_t size = task / folds;
    return predict_fold(set, static_cast<int>(task % folds), options, sizes[size], seed,
                        predictions[size]);
  }));

  const auto best = std::ranges::min_element(
      predictions, {}, [&](const auto& predicted) { return mape_percent(predicted, set.y); });
  const double chosen = sizes[static_cast<std::size_t>(best - predictions.begin())];
  FLEETFIT_ASSIGN(auto model, grow_forest(set, -1, options, chosen, seed));
  return FittedRegressor{
      .model = std::make_unique<TreeModel>(std::move(model)),
      .out_of_fold = std::move(*best),
      .settings = fmt::format("{} trees, {} samples per child", options.trees, chosen)};
}

Result<FittedRegressor> fit_boosted_trees(const TrainingSet& set, const core::Random& random,
                                          core::ThreadPool& pool, const BoostOptions& options) {
  FLEETFIT_TRY(check_set(set));
  if (options.stages < 1 || options.depths.empty() || options.least_child_samples.empty() ||
      options.leaf_penalties.empty())
    return refuse("boosting needs a stage, a depth, a child size and a penalty");
  const auto seed = static_cast<std::uint32_t>(random.seed() & 0x7fffffffU);
  CrossValidation validation(set, options, seed);
  FLEETFIT_TRY(validation.run(pool));
  const auto best = validation.best();
  FLEETFIT_ASSIGN(auto model, fit_to_all(set, options, best, seed));
  return FittedRegressor{
      .model = std::move(model),
      .out_of_fold = validation.out_of_fold(best.second),
      .settings =
          fmt::format("{} stages, depth {}, {} samples per child, penalty {}", best.second,
                      best.first.depth, best.first.least_child_samples, best.first.leaf_penalty)};
}

}  // namespace fleetfit::predict
