#include "fleetfit/predict/mlp.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/predict/training_files.h"
#include "predict/trainer.h"

namespace fleetfit::predict {
namespace {

RowSet row_set_of(const NamedSet& named) {
  const auto& set = named.set;
  RowSet rows{.name = named.name,
              .values = {set.x.values.begin(), set.x.values.end()},
              .ms = {set.y.begin(), set.y.end()},
              .fold = {set.fold.begin(), set.fold.end()},
              .folds = set.folds};
  for (std::size_t i = 0; i < set.x.columns; ++i) rows.features.push_back(fmt::format("{}", i));
  return rows;
}

std::vector<std::string> arguments_of(const std::filesystem::path& rows,
                                      const std::filesystem::path& models,
                                      const MlpOptions& options, std::uint64_t seed, int threads) {
  std::vector<std::string> arguments{
      "mlp",    rows.string(),        "--output",  models.string(),
      "--seed", std::to_string(seed), "--threads", std::to_string(threads),
      "--json"};
  if (options.budget_s)
    arguments.insert(arguments.end(), {"--budget-s", fmt::format("{}", *options.budget_s)});
  if (options.trials)
    arguments.insert(arguments.end(), {"--trials", std::to_string(*options.trials)});
  return arguments;
}

/// What was trained, if it is of these sets.
Result<std::vector<FittedRegressor>> fitted_to(std::span<const NamedSet> sets,
                                               std::vector<TrainedModel> trained) {
  std::vector<FittedRegressor> fitted;
  for (std::size_t i = 0; i < std::min(sets.size(), trained.size()); ++i) {
    auto& model = trained[i];
    if (model.name != sets[i].name || model.out_of_fold.size() != sets[i].set.y.size()) break;
    fitted.push_back({.model = std::move(model.model),
                      .out_of_fold = std::move(model.out_of_fold),
                      .settings = std::move(model.settings)});
  }
  if (fitted.size() == sets.size()) return fitted;
  return fail(ErrorCode::cancelled,
              fmt::format("training was stopped before there was a network for {}",
                          sets[fitted.size()].name));
}

Result<std::vector<FittedRegressor>> fit(std::span<const NamedSet> sets, const core::Random& random,
                                         int threads, const MlpOptions& options) {
  std::vector<RowSet> rows_to_fit;
  for (const auto& named : sets) {
    if (auto checked = check_set(named.set); !checked)
      return core::within(named.name, checked.error());
    rows_to_fit.push_back(row_set_of(named));
  }
  FLEETFIT_ASSIGN(const auto folder, core::ScratchFolder::create());
  const auto rows = folder.path() / "rows.json";
  const auto models = folder.path() / "models.json";
  FLEETFIT_TRY(write_row_sets(rows, rows_to_fit));
  const auto arguments = arguments_of(rows, models, options, random.split("mlp").seed(), threads);
  FLEETFIT_TRY(run_trainer(arguments, options.stop));
  FLEETFIT_ASSIGN(auto trained, read_trained_models(models));
  return fitted_to(sets, std::move(trained));
}

}  // namespace

FitRegressors fit_mlp(MlpOptions options) {
  return [options = std::move(options)](std::span<const NamedSet> sets, const core::Random& random,
                                        core::ThreadPool& pool) {
    return fit(sets, random, pool.workers(), options);
  };
}

}  // namespace fleetfit::predict
