#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "app/learn/learning_study.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/predict/design_predictor.h"
#include "fleetfit/search/search.h"

namespace fleetfit::app {
namespace {

/// Ways to choose a design, in the order of the report.
constexpr std::string_view kLearned = "learned";
constexpr std::string_view kSameSearched = "search with the same networks";
constexpr std::string_view kOwnPredictor = "evolution with a predictor of the device itself";
constexpr std::string_view kNearest = "best network of the nearest known device";
constexpr std::string_view kFewShot = "few-shot transfer, ten measurements";

}  // namespace

std::size_t LearningStudy::best_within(const Truth& truth, std::span<const double> latency,
                                       double budget) {
  std::size_t best = kNone;
  std::size_t quickest = kNone;
  for (std::size_t i = 0; i < latency.size(); ++i) {
    if (!truth.is_known(i) || std::isnan(latency[i])) continue;
    if (quickest == kNone || latency[i] < latency[quickest]) quickest = i;
    if (latency[i] > budget) continue;
    if (best == kNone || truth.samples.accuracy[i] > truth.samples.accuracy[best]) best = i;
  }
  return best == kNone ? quickest : best;
}

Result<std::size_t> LearningStudy::row_of(space::Design design) const {
  const auto row = index_.find(design);
  if (!row) return kNone;
  return *row;
}

LearningStudy::Way LearningStudy::learned_way(const learned::DeviceJudge& judge) {
  return {.name = std::string(kLearned),
          .choose = [this, &judge](double budget) -> Result<std::size_t> {
            learned::Goal goal{.limits = {budget}};
            goal.limits.resize(judge.model().parts().costs.size(), INFINITY);
            const auto answer = learned::answer(judge, goal);
            if (!answer.doubts.empty()) ++unsure_;
            return row_of(answer.design);
          }};
}

LearningStudy::Way LearningStudy::searched_way(const learned::DeviceJudge& judge) {
  return {.name = std::string(kSameSearched),
          .choose = [this, &judge](double budget) -> Result<std::size_t> {
            learned::Goal goal{.limits = {budget}};
            goal.limits.resize(judge.model().parts().costs.size(), INFINITY);
            FLEETFIT_ASSIGN(const auto answer, learned::searched_answer(judge, goal, pool_, 1));
            return row_of(answer.design);
          }};
}

/// Of the known devices whose features are most alike; its latencies are brought to the speed of
/// the new one by the reference latencies.
LearningStudy::Way LearningStudy::nearest_way(const Truth& truth, const learned::Model& model,
                                              std::span<const std::size_t> references) {
  const auto& inputs = model.parts().device;
  const auto own = inputs.read(features_.row(truth.device)).value();
  double nearest = INFINITY;
  std::vector<double> scaled;
  for (const auto reference : references) {
    const auto other = inputs.read(features_.row(reference)).value();
    double distance = 0;
    for (std::size_t i = 0; i < own.inputs.size(); ++i)
      distance += std::pow(own.inputs[i] - other.inputs[i], 2);
    if (distance >= nearest) continue;
    nearest = distance;
    const auto latency = samples_.costs_on(0, reference);
    scaled.assign(latency.begin(), latency.end());
    for (double& value : scaled) value *= std::exp(own.level - other.level);
  }
  return {.name = std::string(kNearest),
          .choose = [&truth, scaled = std::move(scaled)](double budget) -> Result<std::size_t> {
            return best_within(truth, scaled, budget);
          }};
}

Result<LearningStudy::Way> LearningStudy::few_shot_way(const Truth& truth,
                                                       const transfer::KnownDevices& known,
                                                       LearnedDevice& device) {
  std::vector<std::size_t> rows;
  space::Population candidates(samples_.designs.genes());
  for (std::size_t i = 0; i < samples_.designs.size(); ++i) {
    if (!truth.is_known(i)) continue;
    rows.push_back(i);
    candidates.add(samples_.designs[i]);
  }
  space::Population measured(samples_.designs.genes());
  std::vector<double> latency;
  for (const auto place : known.choose(candidates, request_.few_shot_samples)) {
    measured.add(std::as_const(candidates)[place]);
    latency.push_back(truth.latency[rows[place]]);
  }
  const auto model = known.fit(measured, latency);
  if (!model) return core::within(samples_.devices[truth.device], model.error());
  std::vector<transfer::PredictedLatency> predicted(candidates.size());
  (*model)->predict(candidates, predicted);
  std::vector<double> middle;
  std::vector<double> true_ms;
  std::vector<double> high(samples_.designs.size(), NAN);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    high[rows[i]] = predicted[i].high_ms;
    if (!truth.works(rows[i])) continue;
    middle.push_back(predicted[i].ms);
    true_ms.push_back(truth.latency[rows[i]]);
  }
  device.few_shot_srcc = core::spearman(middle, true_ms).value_or(0);
  device.few_shot_same_srcc = same_references(truth, known);
  return Way{.name = std::string(kFewShot),
             .choose = [&truth, high = std::move(high)](double budget) -> Result<std::size_t> {
               return best_within(truth, high, budget);
             }};
}

/// Few-shot transfer from the reference designs of this space among the features.
std::optional<double> LearningStudy::same_references(const Truth& truth,
                                                     const transfer::KnownDevices& known) const {
  space::Population references(samples_.designs.genes());
  std::vector<double> latency;
  const auto row = features_.row(truth.device);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto column = learned::parse_feature_column(features_.names[i]);
    if (!column || column->space != samples_.space->name() || std::isnan(row[i])) continue;
    const auto design = samples_.space->parse(column->name);
    if (!design) continue;
    references.add(*design);
    latency.push_back(row[i]);
  }
  const auto model = known.fit(references, latency);
  if (!model) return std::nullopt;
  std::vector<double> predicted(samples_.designs.size());
  if (!(*model)->evaluate(samples_.designs, predicted)) return std::nullopt;
  std::vector<double> expected_ms;
  std::vector<double> true_ms;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (!truth.is_known(i) || !truth.works(i)) continue;
    expected_ms.push_back(predicted[i]);
    true_ms.push_back(truth.latency[i]);
  }
  const auto srcc = core::spearman(expected_ms, true_ms);
  return srcc ? std::optional(*srcc) : std::nullopt;
}

/// True accuracies by row of the table, as a source.
Result<LearningStudy::Way> LearningStudy::own_way(const Truth& truth) {
  auto random = core::Random(request_.training.seed).split("own predictor").split(truth.device);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < samples_.designs.size(); ++i)
    if (truth.is_known(i)) rows.push_back(i);
  random.shuffle(rows);
  rows.resize(std::min(rows.size(), request_.own_samples));
  space::Population designs(samples_.designs.genes());
  std::vector<double> latency;
  for (const auto row : rows) {
    designs.add(samples_.designs[row]);
    latency.push_back(truth.latency[row]);
  }
  auto trained = predict::train_design_predictor(
      *samples_.space, designs, latency,
      {.method = predict::DesignMethod::automatic, .seed = request_.training.seed}, pool_);
  if (!trained) return core::within(samples_.devices[truth.device], trained.error());
  const std::shared_ptr<const predict::DesignPredictor> predictor = *std::move(trained);
  space::DesignTable accuracies{.name = "accuracy",
                                .space = samples_.space,
                                .designs = samples_.designs,
                                .columns = {"accuracy"},
                                .values = {samples_.accuracy}};
  const std::shared_ptr<const space::Source> accuracy = space::table_source(accuracies, 0);
  return Way{.name = std::string(kOwnPredictor),
             .choose = [this, predictor, accuracy](double budget) -> Result<std::size_t> {
               FLEETFIT_ASSIGN(
                   auto strategy,
                   search::make_evolution(*samples_.space, core::Random(request_.training.seed),
                                          {.population = 200, .generations = 20}));
               const search::Problem problem{
                   .space = samples_.space,
                   .accuracy = accuracy.get(),
                   .costs = {{.name = "latency_ms", .source = predictor.get(), .limit = budget}}};
               FLEETFIT_ASSIGN(const auto found, search::run_search(problem, *strategy, pool_));
               return row_of(found.best ? found.best->design : found.nearest->design);
             }};
}

}  // namespace fleetfit::app
