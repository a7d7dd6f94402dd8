#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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

}  // namespace

Result<FittedRegressor> fit_forest(const TrainingSet& set, const core::Random& random,
                                   core::ThreadPool& pool, const ForestOptions& options) {
  FLEETFIT_TRY(check_set(set));
  if (options.trees < 1 || options.least_child_samples.empty())
    return fail(ErrorCode::invalid_input, "a forest needs a tree and a child size");
  const auto seed = static_cast<std::uint32_t>(random.seed() & 0x7fffffffU);
  const auto& sizes = options.least_child_samples;
  const auto folds = static_cast<std::size_t>(set.folds);
  std::vector<std::vector<double>> predictions(sizes.size(), std::vector<double>(set.y.size()));
  std::vector<Status> done(sizes.size() * folds);
  pool.parallel_for(done.size(), [&](std::size_t task) {
    const std::size_t size = task / folds;
    done[task] = predict_fold(set, static_cast<int>(task % folds), options, sizes[size], seed,
                              predictions[size]);
  });
  for (const auto& status : done) FLEETFIT_TRY(status);

  const auto best = std::ranges::min_element(
      predictions, {}, [&](const auto& predicted) { return mape_percent(predicted, set.y); });
  const double chosen = sizes[static_cast<std::size_t>(best - predictions.begin())];
  FLEETFIT_ASSIGN(auto model, grow_forest(set, -1, options, chosen, seed));
  return FittedRegressor{
      .model = std::make_unique<TreeModel>(std::move(model)),
      .out_of_fold = std::move(*best),
      .settings = fmt::format("{} trees, {} samples per child", options.trees, chosen)};
}

}  // namespace fleetfit::predict
