#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/random.h"
#include "fleetfit/predict/training_files.h"
#include "fleetfit/train/predictors.h"
#include "train/verbs/verb.h"

namespace fleetfit::train {
namespace {

/// Of the verbs that learn from samples of times.
struct PredictorFlags {
  CommonFlags common;
  std::string samples;
  std::string output;
  double budget_s = 0;
  TrainingOptions training;

  /// A part of the work gets this share of all time, at most what is left.
  TrainingOptions options(const Work& work, double share) const;
};

void add_flags(CLI::App& verb, PredictorFlags& flags) {
  verb.add_option("SAMPLES", flags.samples, "File of samples")->required();
  verb.add_option("-o,--output", flags.output, "File to write")->required();
  verb.add_option("--epochs", flags.training.max_epochs, "Most epochs of one training")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--trials", flags.training.trials, "Settings to try")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb.add_option("--max-weights", flags.training.max_weights, "Most weights of a network")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  verb.add_option("--budget-s", flags.budget_s, "Seconds after which training ends; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  add_common_flags(verb, flags.common);
}

TrainingOptions PredictorFlags::options(const Work& work, double share) const {
  auto options = training;
  options.seed = common.seed;
  if (budget_s > 0) {
    const double left_s = std::max(budget_s - work.elapsed_s(), 0.0);
    options.budget =
        std::chrono::nanoseconds(std::llround(std::min(left_s, budget_s * share) * 1e9));
  }
  return options;
}

/// Adds a verb with these flags and an example; `run` is its action.
void add_predictor_verb(CLI::App& program, Action& action, const std::string& name,
                        const std::string& summary, Result<int> (*run)(const PredictorFlags&)) {
  auto* verb = program.add_subcommand(name, summary);
  const auto flags = std::make_shared<PredictorFlags>();  // shared by the verb and its action
  add_flags(*verb, *flags);
  verb->footer(fmt::format("Example:\n  fleetfit-train {} samples.json -o network.json", name));
  verb->callback([&action, flags, run] { action = [flags, run] { return run(*flags); }; });
}

Result<int> run_graph_network(const PredictorFlags& flags) {
  FLEETFIT_ASSIGN(const auto set, predict::read_graph_set(flags.samples));
  Work work(flags.common);
  FLEETFIT_ASSIGN(const auto trained,
                  core::within(flags.samples,
                               train_graph_network(
                                   {.features = set.features, .graphs = set.graphs, .ms = set.ms},
                                   flags.options(work, 1.0), work.context())));
  const auto text = core::format_json_line(trained.network.to_json()) + "\n";
  FLEETFIT_TRY(core::write_file(flags.output, text));
  if (flags.common.json) {
    print({{"validation_percent", trained.validation_percent},
           {"epochs", trained.epochs},
           {"ended", to_string(trained.ended)},
           {"settings", trained.settings},
           {"elapsed_s", work.elapsed_s()},
           {"interrupted", work.is_interrupted()}});
  } else {
    fmt::print("{:.2f} % on graphs not trained on after {} epochs ({})\n",
               trained.validation_percent, trained.epochs, trained.settings);
  }
  return work.finish("interrupted; the best network so far is in " + flags.output);
}

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

// The sets with the most rows first, so that in the end no thread waits for a long one.
std::vector<std::size_t> longest_first(std::span<const predict::RowSet> sets) {
  auto order = core::counting(sets.size());
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return sets[i].ms.size(); });
  return order;
}

// What of all time is due to each set, if as many are trained at once as there are threads.
std::vector<double> shares_of(std::span<const predict::RowSet> sets, int threads) {
  std::vector<double> shares;
  for (const auto& set : sets) shares.push_back(static_cast<double>(set.ms.size()));
  const double rows = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share = std::min(1.0, share / rows * threads);
  return shares;
}

// Each set has random numbers of its own. After an interruption, no further set is begun.
Result<std::vector<predict::TrainedModel>> train_all(std::span<const predict::RowSet> sets,
                                                     Work& work, const PredictorFlags& flags) {
  const auto context = work.context();
  const auto order = longest_first(sets);
  const auto shares = shares_of(sets, context.pool.workers());
  std::vector<Result<std::optional<predict::TrainedModel>>> trained(sets.size());
  context.pool.parallel_chunks(sets.size(), 1, [&](std::size_t place, std::size_t) {
    if (work.is_interrupted()) return;
    const std::size_t i = order[place];
    auto options = flags.options(work, shares[i]);
    options.seed = core::Random(options.seed).split(sets[i].name).seed();
    auto one = train_mlp(sets[i].view(), sets[i].name, options, context);
    if (one) {
      trained[i] = record_of(sets[i], *std::move(one));
    } else {
      trained[i] = core::within(fmt::format("{}: {}", flags.samples, sets[i].name), one.error());
    }
  });
  std::vector<predict::TrainedModel> models;
  for (auto& one : trained) {
    FLEETFIT_TRY(one);
    if (*one) models.push_back(**std::move(one));
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
  FLEETFIT_ASSIGN(const auto sets, predict::read_row_sets(flags.samples));
  if (sets.empty()) return refuse(flags.samples + ": there are no sets");
  Work work(flags.common);
  FLEETFIT_ASSIGN(const auto models, train_all(sets, work, flags));
  FLEETFIT_TRY(predict::write_trained_models(flags.output, models));
  if (flags.common.json) {
    print(summary(models, work));
  } else {
    for (const auto& model : models) {
      fmt::print("{}: {:.2f} % on rows not trained on after {} epochs ({})\n", model.name,
                 model.validation_percent, model.epochs, model.settings);
    }
  }
  return work.finish(fmt::format("interrupted; {} of {} networks are in {}", models.size(),
                                 sets.size(), flags.output));
}

}  // namespace

void add_graph_network(CLI::App& program, Action& action) {
  add_predictor_verb(program, action, "graph-network",
                     "A graph network that predicts the time of a whole network",
                     &run_graph_network);
}

void add_mlp(CLI::App& program, Action& action) {
  add_predictor_verb(program, action, "mlp",
                     "Dense networks that predict times from rows of numbers", &run_mlp);
}

}  // namespace fleetfit::train
