#include "fleetfit/train/predictors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/names.h"
#include "fleetfit/core/parallel.h"
#include "train/fit.h"
#include "train/torch/fits.h"

namespace fleetfit::train {
namespace {

using predict::TrainingSet;
using predict::Transform;

struct Settings {
  DenseFitOptions network;
  double rate = 5e-3;
  Transform inputs = Transform::logarithm;
  Transform output = Transform::logarithm;
};

Settings draw_settings(core::Random& random) {
  Settings settings;
  settings.network.layers = static_cast<int>(random.between(1, 6));
  settings.network.width = one_of(std::array{64, 128, 256, 512}, random);
  settings.rate = one_of(std::array{5e-3, 5e-4, 5e-5}, random);
  settings.network.decay = one_of(std::array{1e-3, 1e-4, 1e-5}, random);
  settings.inputs = random.chance(0.25) ? Transform::plain : Transform::logarithm;
  settings.output = random.chance(0.25) ? Transform::plain : Transform::logarithm;
  return settings;
}

std::string describe(const Settings& settings) {
  return fmt::format("layers {}, neurons {}, rate {:g}, decay {:g}, {} inputs, {} output",
                     settings.network.layers, settings.network.width, settings.rate,
                     settings.network.decay, core::to_string(settings.inputs),
                     core::to_string(settings.output));
}

std::size_t count_weights(const Settings& settings, std::size_t features) {
  const auto width = static_cast<std::size_t>(settings.network.width);
  const auto layers = static_cast<std::size_t>(settings.network.layers);
  return (features + 1) * width + (layers - 1) * (width + 1) * width + width + 1;
}

std::vector<double> rows_of(const TrainingSet& set, std::span<const std::size_t> samples) {
  std::vector<double> rows;
  rows.reserve(samples.size() * set.x.columns);
  for (const std::size_t i : samples) {
    const auto row = set.x.row(i);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

std::vector<double> times_of(const TrainingSet& set, std::span<const std::size_t> samples) {
  std::vector<double> times;
  for (const std::size_t i : samples) times.push_back(set.y[i]);
  return times;
}

// The rows of one training and how they are scaled.
struct Prepared {
  predict::InputScaling inputs;
  DenseFitData data;
};

DenseSamples prepare_samples(const TrainingSet& set, std::span<const std::size_t> samples,
                             const predict::InputScaling& inputs,
                             const predict::OutputScaling& output) {
  DenseSamples prepared;
  const std::size_t columns = set.x.columns;
  prepared.rows.resize(samples.size() * columns);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    predict::scale_inputs(inputs, set.x.row(samples[i]),
                          std::span(prepared.rows).subspan(i * columns, columns));
  }
  prepared.targets = make_targets(times_of(set, samples), output);
  return prepared;
}

Prepared prepare(const TrainingSet& set, const Split& split, const Settings& settings) {
  auto inputs = fit_inputs(rows_of(set, split.training), set.x.columns, settings.inputs);
  const auto output = fit_output(times_of(set, split.training), settings.output);
  auto training = prepare_samples(set, split.training, inputs, output);
  auto validation = prepare_samples(set, split.validation, inputs, output);
  return {.inputs = std::move(inputs),
          .data = {.features = set.x.columns,
                   .training = std::move(training),
                   .validation = std::move(validation),
                   .output = output}};
}

// A fit that can be made a network of.
class MlpFit final : public Fit {
 public:
  MlpFit(Prepared prepared, const Settings& settings, const core::Random& random)
      : inputs_(std::move(prepared.inputs)),
        output_(prepared.data.output),
        fit_(make_dense_fit(std::move(prepared.data), settings.network, random)) {}

  void run_epoch(double rate) override { fit_->run_epoch(rate); }
  double validation_percent() override { return fit_->validation_percent(); }
  void keep() override { fit_->keep(); }

  Result<predict::DenseNetwork> network() const {
    return predict::DenseNetwork::make(
        {.inputs = inputs_, .layers = fit_->layers(), .output = output_});
  }

 private:
  predict::InputScaling inputs_;
  predict::OutputScaling output_;
  std::unique_ptr<DenseFit> fit_;
};

Result<predict::DenseNetwork> network_of(Training& training) {
  return static_cast<MlpFit&>(training.fit()).network();
}

// The first is what does well most often.
std::vector<Settings> draw_all(const TrainingOptions& options, std::size_t features,
                               core::Random random) {
  constexpr int kDraws = 100'000;
  std::vector<Settings> all;
  all.push_back({.network = {.layers = 3, .width = 128, .decay = 1e-5}});
  for (int draw = 0; draw < kDraws && std::ssize(all) < options.trials; ++draw) {
    const auto settings = draw_settings(random);
    if (count_weights(settings, features) <= options.max_weights) all.push_back(settings);
  }
  return all;
}

std::vector<Candidate> make_candidates(const TrainingSet& set, const Split& split,
                                       const std::vector<Settings>& settings,
                                       const core::Random& random) {
  std::vector<Candidate> candidates;
  for (const auto& chosen : settings) {
    const auto make = [&set, &split, &chosen, child = random.split(candidates.size())] {
      return std::make_unique<MlpFit>(prepare(set, split, chosen), chosen, child);
    };
    candidates.push_back(
        {.make = make, .rate = chosen.rate, .weights = count_weights(chosen, set.x.columns)});
  }
  return candidates;
}

std::vector<std::size_t> samples_in(const TrainingSet& set, int fold, bool inside) {
  std::vector<std::size_t> samples;
  for (std::size_t i = 0; i < set.y.size(); ++i)
    if ((set.fold[i] == fold) == inside) samples.push_back(i);
  return samples;
}

bool has_folds(const TrainingSet& set) { return set.folds > 1; }

// Rows of one fold belong together, as kernels of one network do: what is learned from some of a
// network's kernels says little about networks that nobody has seen. So a whole fold is set aside,
// where there are others to learn from.
Split split_rows(const TrainingSet& set, std::vector<std::size_t> samples, int fold_aside,
                 core::Random random) {
  Split split;
  if (has_folds(set)) {
    for (const std::size_t i : samples)
      (set.fold[i] == fold_aside ? split.validation : split.training).push_back(i);
  }
  if (!split.validation.empty() && !split.training.empty()) return split;
  return split_samples(std::move(samples), std::move(random));
}

// Trains without a fold and predicts it.
Status predict_fold(const TrainingSet& set, int fold, const Settings& settings,
                    const TrainingOptions& options, const Deadline& deadline,
                    std::span<double> out) {
  const auto held_out = samples_in(set, fold, true);
  const auto others = samples_in(set, fold, false);
  if (held_out.empty()) return {};
  if (others.empty()) return refuse(fmt::format("all rows are in fold {}", fold));
  const auto random =
      core::Random(options.seed).split("folds").split(static_cast<std::uint64_t>(fold));
  const auto split = split_rows(set, others, (fold + 1) % set.folds, random.split("split"));
  Training training(
      std::make_unique<MlpFit>(prepare(set, split, settings), settings, random.split("fit")),
      settings.rate);
  training.run(options.max_epochs, options.patience, deadline);
  FLEETFIT_ASSIGN(const auto network, network_of(training));
  std::vector<double> predicted(held_out.size());
  network.predict({.values = rows_of(set, held_out), .columns = set.x.columns}, predicted);
  for (std::size_t i = 0; i < held_out.size(); ++i) out[held_out[i]] = predicted[i];
  return {};
}

Result<std::vector<double>> predict_folds(const TrainingSet& set, const Settings& settings,
                                          const TrainingOptions& options, const Deadline& deadline,
                                          core::ThreadPool& pool, core::ProgressTask& progress) {
  std::vector<double> predicted(set.y.size());
  const auto predict = [&](std::size_t fold) {
    auto done = predict_fold(set, static_cast<int>(fold), settings, options, deadline, predicted);
    progress.advance();
    return done;
  };
  FLEETFIT_TRY(core::try_each(pool, static_cast<std::size_t>(set.folds), predict));
  return predicted;
}

Status check_with_or_without_folds(const TrainingSet& set) {
  if (has_folds(set)) return predict::check_set(set);
  const std::vector<int> one_fold(set.y.size());
  return predict::check_set({.x = set.x, .y = set.y, .fold = one_fold, .folds = 1});
}

// The share of the budget after which the search has to end, so that time is left for the folds.
Deadline deadline_of(double share, const TrainingOptions& options, const TrainingContext& context,
                     std::chrono::nanoseconds start) {
  std::optional<std::chrono::nanoseconds> end;
  if (options.budget)
    end = start + std::chrono::nanoseconds(
                      std::llround(share * static_cast<double>(options.budget->count())));
  return {.clock = context.clock, .end = end, .stop = context.stop};
}

}  // namespace

Result<TrainedMlp> train_mlp(const TrainingSet& set, const std::string& name,
                             const TrainingOptions& options, const TrainingContext& context) {
  FLEETFIT_TRY(check_with_or_without_folds(set));
  use_one_thread_per_fit();
  const auto start = context.clock.now();
  const core::Random random(options.seed);
  auto samples = core::counting(set.y.size());
  const auto split = split_rows(set, samples, 0, random.split("split"));
  const auto settings = draw_all(options, set.x.columns, random.split("settings"));
  const auto candidates = make_candidates(set, split, settings, random.split("fits"));

  const std::size_t folds = has_folds(set) ? static_cast<std::size_t>(set.folds) : 0;
  core::ProgressTask progress(
      context.progress,
      {.name = name, .total = search_steps(candidates.size()) + folds, .unit = "trainings"});
  auto found =
      search(candidates, options, deadline_of(folds > 0 ? 0.5 : 1.0, options, context, start),
             context.pool, progress);
  FLEETFIT_ASSIGN(auto network, network_of(*found.training));
  TrainedMlp trained{.network = std::move(network),
                     .settings = describe(settings[found.candidate]),
                     .validation_percent = found.training->best_percent(),
                     .epochs = found.training->best_epoch(),
                     .ended = found.training->ended()};
  if (folds > 0) {
    FLEETFIT_ASSIGN(trained.out_of_fold, predict_folds(set, settings[found.candidate], options,
                                                       deadline_of(1.0, options, context, start),
                                                       context.pool, progress));
  }
  return trained;
}

}  // namespace fleetfit::train
