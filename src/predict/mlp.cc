#include "fleetfit/predict/mlp.h"

#include <fmt/format.h>

#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/predict/training_files.h"
#include "predict/trainer.h"

namespace fleetfit::predict {
namespace {

RowSet row_set_of(const TrainingSet& set) {
  RowSet rows{.name = "rows",
              .values = {set.x.values.begin(), set.x.values.end()},
              .ms = {set.y.begin(), set.y.end()},
              .fold = {set.fold.begin(), set.fold.end()},
              .folds = set.folds};
  for (std::size_t i = 0; i < set.x.columns; ++i) rows.features.push_back(fmt::format("{}", i));
  return rows;
}

Result<FittedRegressor> fit(const TrainingSet& set, const core::Random& random, int threads,
                            const MlpOptions& options) {
  if (auto checked = check_set(set); !checked) return tl::unexpected(std::move(checked.error()));
  const auto folder = core::ScratchFolder::create();
  if (!folder) return tl::unexpected(folder.error());
  const auto rows = folder->path() / "rows.json";
  const auto models = folder->path() / "models.json";
  const auto rows_to_fit = row_set_of(set);
  if (auto written = write_row_sets(rows, std::span(&rows_to_fit, 1)); !written)
    return tl::unexpected(std::move(written.error()));

  std::vector<std::string> arguments{"mlp",       rows.string(),
                                     "--output",  models.string(),
                                     "--seed",    std::to_string(random.split("mlp").seed()),
                                     "--threads", std::to_string(threads),
                                     "--json"};
  if (options.budget_s)
    arguments.insert(arguments.end(), {"--budget-s", fmt::format("{}", *options.budget_s)});
  if (options.trials)
    arguments.insert(arguments.end(), {"--trials", std::to_string(*options.trials)});
  if (auto done = run_trainer(arguments, options.stop); !done)
    return tl::unexpected(std::move(done.error()));

  auto trained = read_trained_models(models);
  if (!trained) return tl::unexpected(std::move(trained.error()));
  if (trained->size() != 1 || trained->front().out_of_fold.size() != set.y.size())
    return fail(ErrorCode::cancelled, "training was stopped before there was a network");
  auto& model = trained->front();
  return FittedRegressor{.model = std::move(model.model),
                         .out_of_fold = std::move(model.out_of_fold),
                         .settings = std::move(model.settings)};
}

}  // namespace

FitRegressor fit_mlp(MlpOptions options) {
  return [options = std::move(options)](const TrainingSet& set, const core::Random& random,
                                        core::ThreadPool& pool) {
    return fit(set, random, pool.workers(), options);
  };
}

}  // namespace fleetfit::predict
