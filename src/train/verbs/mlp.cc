#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/predict/training_files.h"
#include "fleetfit/train/mlp.h"
#include "train/verbs/predictor_flags.h"

namespace fleetfit::train {
namespace {

predict::TrainedModel record_of(const predict::RowSet& set, TrainedMlp trained) {
  return {.name = set.name,
          .features = set.features,
          .model = std::make_unique<predict::DenseNetwork>(std::move(trained.network)),
          .settings = std::move(trained.settings),
          .validation_percent = trained.validation_percent,
          .epochs = trained.epochs,
          .ended = std::string(to_string(trained.ended)),
          .out_of_fold = std::move(trained.out_of_fold)};
}

std::size_t rows_from(std::span<const predict::RowSet> sets) {
  std::size_t rows = 0;
  for (const auto& set : sets) rows += set.ms.size();
  return rows;
}

// The time that is left is shared by the number of rows. After an interruption, no further set is
// begun.
Result<std::vector<predict::TrainedModel>> train_all(std::span<const predict::RowSet> sets,
                                                     Work& work, const PredictorFlags& flags) {
  std::vector<predict::TrainedModel> models;
  for (std::size_t i = 0; i < sets.size() && !work.is_interrupted(); ++i) {
    const auto& set = sets[i];
    const double share =
        static_cast<double>(set.ms.size()) / static_cast<double>(rows_from(sets.subspan(i)));
    auto trained = train_mlp(set.view(), set.name, flags.options(work, share), work.context());
    if (!trained)
      return core::within(fmt::format("{}: {}", flags.samples, set.name), trained.error());
    models.push_back(record_of(set, *std::move(trained)));
  }
  return models;
}

nlohmann::ordered_json summary(std::span<const predict::TrainedModel> models, const Work& work) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& model : models) {
    list.push_back({{"name", model.name},
                    {"validation_percent", model.validation_percent},
                    {"epochs", model.epochs},
                    {"ended", model.ended},
                    {"settings", model.settings}});
  }
  return {{"models", std::move(list)},
          {"elapsed_s", work.elapsed_s()},
          {"interrupted", work.is_interrupted()}};
}

Result<int> run_mlp(const PredictorFlags& flags) {
  const auto sets = predict::read_row_sets(flags.samples);
  if (!sets) return tl::unexpected(sets.error());
  if (sets->empty()) return fail(ErrorCode::invalid_input, flags.samples + ": there are no sets");
  Work work(flags.common);
  const auto models = train_all(*sets, work, flags);
  if (!models) return tl::unexpected(models.error());
  if (auto written = predict::write_trained_models(flags.output, *models); !written)
    return tl::unexpected(std::move(written.error()));
  if (flags.common.json) {
    print(summary(*models, work));
  } else {
    for (const auto& model : *models) {
      fmt::print("{}: {:.2f} % on rows not trained on after {} epochs ({})\n", model.name,
                 model.validation_percent, model.epochs, model.settings);
    }
  }
  return work.finish(fmt::format("interrupted; {} of {} networks are in {}", models->size(),
                                 sets->size(), flags.output));
}

}  // namespace

void add_mlp(CLI::App& program, Action& action) {
  add_predictor_verb(program, action, "mlp",
                     "Dense networks that predict times from rows of numbers", &run_mlp);
}

}  // namespace fleetfit::train
