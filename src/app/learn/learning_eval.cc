#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>

#include "app/learn/learning_samples.h"
#include "fleetfit/app/learning.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/learned/device_features.h"
#include "fleetfit/learned/lessons.h"
#include "fleetfit/learned/samples.h"
#include "fleetfit/predict/design_predictor.h"
#include "fleetfit/search/search.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/transfer/few_shot.h"

namespace fleetfit::app {
namespace {

using learned::Samples;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Ways to choose a design, in the order of the report.
constexpr std::string_view kLearned = "learned";
constexpr std::string_view kSameSearched = "search with the same networks";
constexpr std::string_view kOwnPredictor = "evolution with a predictor of the device itself";
constexpr std::string_view kNearest = "best network of the nearest known device";
constexpr std::string_view kFewShot = "few-shot transfer, ten measurements";

/// What is known of all designs of the table, and of one device truly.
struct Truth {
  const Samples& samples;
  std::size_t device = 0;
  std::span<const double> latency;

  bool is_known(std::size_t row) const {
    return !std::isnan(latency[row]) && !std::isnan(samples.accuracy[row]);
  }
  /// Designs whose input has no way to the output are no networks.
  bool works(std::size_t row) const {
    return samples.space->live_slots(std::as_const(samples.designs)[row]).any();
  }
};

/// The most accurate design of the table that takes at most this long by `latency`, with the true
/// accuracies; the quickest if there is none.
std::size_t best_within(const Truth& truth, std::span<const double> latency, double budget) {
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

std::vector<double> budgets_of(const Truth& truth, BudgetSpread spread, std::size_t count) {
  std::vector<double> known;
  for (std::size_t i = 0; i < truth.latency.size(); ++i)
    if (truth.is_known(i)) known.push_back(truth.latency[i]);
  if (known.empty()) return {};
  const auto [quickest, slowest] = std::ranges::minmax(known);
  std::vector<double> budgets;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    budgets.push_back(spread == BudgetSpread::range ? std::lerp(quickest, slowest, share)
                                                    : *core::quantile(known, share));
  }
  return budgets;
}

/// A way with its choices.
struct Way {
  std::string name;
  std::function<Result<std::size_t>(double budget)> choose;  // a row of the table
};

struct Timed {
  std::vector<double> us;
};

class Study {
 public:
  Study(const LearnEvalRequest& request, const Samples& samples, const space::DesignTable& table,
        core::ThreadPool& pool, const core::Clock& clock)
      : request_(request),
        samples_(samples),
        table_(table),
        pool_(pool),
        clock_(clock),
        index_(*samples.space) {
    for (std::size_t i = 0; i < samples.designs.size(); ++i)
      index_.add(std::as_const(samples.designs)[i]);
  }

  /// A split whose model was trained without the devices.
  Status look_at(const learned::Model& model, std::span<const std::size_t> left_out,
                 std::size_t split, learned::KnownFeatures features);

  LearnEvalReport report() const;

 private:
  Status look_at_device(const learned::Model& model, const transfer::KnownDevices* known,
                        std::span<const std::size_t> references, std::size_t device,
                        std::size_t split);
  Way learned_way(const learned::DeviceJudge& judge);
  Way searched_way(const learned::DeviceJudge& judge);
  Way nearest_way(const Truth& truth, const learned::Model& model,
                  std::span<const std::size_t> references);
  Result<Way> few_shot_way(const Truth& truth, const transfer::KnownDevices& known,
                           LearnedDevice& device);
  std::optional<double> same_references(const Truth& truth,
                                        const transfer::KnownDevices& known) const;
  std::string advice() const;
  Result<Way> own_way(const Truth& truth);
  Status run(const Way& way, const Truth& truth);
  Status run(const Way& way, const Truth& truth, BudgetSpread spread);
  Result<std::size_t> row_of(space::Design design) const;
  void judge_predictions(const Truth& truth, const learned::DeviceJudge& judge,
                         LearnedDevice& device);
  LearnWay summary(const std::string& way, BudgetSpread spread) const;

  const LearnEvalRequest& request_;
  const Samples& samples_;
  const space::DesignTable& table_;
  core::ThreadPool& pool_;
  const core::Clock& clock_;
  space::DesignIndex index_;
  std::vector<LearnedDevice> devices_;
  std::vector<LearnOutcome> outcomes_;
  std::vector<std::string> ways_;  // in the order in which they came
  std::map<std::string, Timed> times_;
  std::size_t unsure_ = 0;
  learned::KnownFeatures features_;  // of all devices, in the split that is looked at
};

Result<std::size_t> Study::row_of(space::Design design) const {
  const auto row = index_.find(design);
  if (!row) return kNone;
  return *row;
}

Way Study::learned_way(const learned::DeviceJudge& judge) {
  return {.name = std::string(kLearned),
          .choose = [this, &judge](double budget) -> Result<std::size_t> {
            learned::Goal goal{.limits = {budget}};
            goal.limits.resize(judge.model().parts().costs.size(), INFINITY);
            const auto answer = learned::answer(judge, goal);
            if (!answer.doubts.empty()) ++unsure_;
            return row_of(answer.design);
          }};
}

Way Study::searched_way(const learned::DeviceJudge& judge) {
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
Way Study::nearest_way(const Truth& truth, const learned::Model& model,
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

Result<Way> Study::few_shot_way(const Truth& truth, const transfer::KnownDevices& known,
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
std::optional<double> Study::same_references(const Truth& truth,
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
  std::vector<double> told;
  std::vector<double> true_ms;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (!truth.is_known(i) || !truth.works(i)) continue;
    told.push_back(predicted[i]);
    true_ms.push_back(truth.latency[i]);
  }
  const auto srcc = core::spearman(told, true_ms);
  return srcc ? std::optional(*srcc) : std::nullopt;
}

std::string Study::advice() const {
  if (!request_.compare || devices_.empty()) return "";
  double learned_sum = 0;
  double few_shot_sum = 0;
  for (const auto& device : devices_) {
    learned_sum += device.srcc;
    few_shot_sum += device.few_shot_srcc;
  }
  const auto count = static_cast<double>(devices_.size());
  if (few_shot_sum <= learned_sum) {
    return fmt::format("the networks rank designs as well as few-shot transfer ({:.3f}, {:.3f})",
                       learned_sum / count, few_shot_sum / count);
  }
  return fmt::format(
      "few-shot transfer ranks designs better ({:.3f}, the networks {:.3f}): where {} designs of "
      "its "
      "choice can be measured, use `transfer fewshot` and `search` instead",
      few_shot_sum / count, learned_sum / count, request_.few_shot_samples);
}

/// True accuracies by row of the table, as a source.
Result<Way> Study::own_way(const Truth& truth) {
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

Status Study::run(const Way& way, const Truth& truth) {
  if (std::ranges::count(ways_, way.name) == 0) ways_.push_back(way.name);
  for (const auto spread : kBudgetSpreads) FLEETFIT_TRY(run(way, truth, spread));
  return {};
}

Status Study::run(const Way& way, const Truth& truth, BudgetSpread spread) {
  for (const double budget : budgets_of(truth, spread, request_.budgets)) {
    const auto start = clock_.now();
    const auto row = way.choose(budget);
    const double us = std::chrono::duration<double, std::micro>(clock_.now() - start).count();
    FLEETFIT_TRY(row);
    times_[way.name].us.push_back(us);
    if (*row == kNone || !truth.is_known(*row)) continue;  // no truth about it in the table
    const auto best = best_within(truth, truth.latency, budget);
    outcomes_.push_back({.device = samples_.devices[truth.device],
                         .way = way.name,
                         .spread = spread,
                         .budget_ms = budget,
                         .latency_ms = truth.latency[*row],
                         .accuracy = samples_.accuracy[*row],
                         .best_accuracy = samples_.accuracy[best]});
  }
  return {};
}

void Study::judge_predictions(const Truth& truth, const learned::DeviceJudge& judge,
                              LearnedDevice& device) {
  std::vector<learned::Judged> judged(samples_.designs.size());
  judge.judge(samples_.designs, judged);
  std::vector<double> predicted;
  std::vector<double> true_ms;
  double errors = 0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (!truth.is_known(i) || !truth.works(i)) continue;
    predicted.push_back(std::exp(judged[i].log_cost[0]));
    true_ms.push_back(truth.latency[i]);
    errors += std::abs(predicted.back() / true_ms.back() - 1);
  }
  device.srcc = core::spearman(predicted, true_ms).value_or(0);
  device.mape = 100 * errors / static_cast<double>(std::max<std::size_t>(predicted.size(), 1));
}

Status Study::look_at_device(const learned::Model& model, const transfer::KnownDevices* known,
                             std::span<const std::size_t> references, std::size_t device,
                             std::size_t split) {
  const Truth truth{.samples = samples_, .device = device, .latency = samples_.costs_on(0, device)};
  const auto vector = model.parts().device.read(features_.row(device));
  if (!vector) return core::within(samples_.devices[device], vector.error());
  const learned::DeviceJudge judge(model, *vector);
  LearnedDevice found{.device = samples_.devices[device],
                      .split = split,
                      .distance = vector->distance / model.parts().device.parts().usual_distance};
  judge_predictions(truth, judge, found);
  std::vector<Way> ways{learned_way(judge)};
  if (request_.compare) {
    ways.push_back(searched_way(judge));
    FLEETFIT_ASSIGN(auto own, own_way(truth));
    ways.push_back(std::move(own));
    ways.push_back(nearest_way(truth, model, references));
    FLEETFIT_ASSIGN(auto few_shot, few_shot_way(truth, *known, found));
    ways.push_back(std::move(few_shot));
  }
  for (const auto& way : ways) FLEETFIT_TRY(run(way, truth));
  devices_.push_back(std::move(found));
  return {};
}

Status Study::look_at(const learned::Model& model, std::span<const std::size_t> left_out,
                      std::size_t split, learned::KnownFeatures features) {
  features_ = std::move(features);
  std::vector<std::size_t> references;
  std::vector<std::size_t> columns;
  for (std::size_t d = 0; d < samples_.devices.size(); ++d) {
    if (std::ranges::count(left_out, d) > 0) continue;
    references.push_back(d);
    columns.push_back(table_.find_column(samples_.devices[d]).value());
  }
  std::optional<transfer::KnownDevices> known;
  if (request_.compare) {
    FLEETFIT_ASSIGN(
        known, transfer::KnownDevices::learn(table_, columns, {.seed = request_.training.seed}));
  }
  for (const auto device : left_out) {
    FLEETFIT_TRY(look_at_device(model, known ? &*known : nullptr, references, device, split));
  }
  return {};
}

LearnWay Study::summary(const std::string& way, BudgetSpread spread) const {
  LearnWay result{.way = way, .spread = spread};
  std::vector<double> losses;
  std::size_t kept = 0;
  for (const auto& outcome : outcomes_) {
    if (outcome.way != way || outcome.spread != spread) continue;
    losses.push_back(outcome.best_accuracy - outcome.accuracy);
    if (outcome.latency_ms <= outcome.budget_ms) ++kept;
  }
  result.cases = losses.size();
  if (losses.empty()) return result;
  result.median_loss = *core::median(losses);
  result.p90_loss = *core::quantile(losses, 0.9);
  result.mean_loss = *core::mean(losses);
  result.kept = static_cast<double>(kept) / static_cast<double>(losses.size());
  result.answer_us = *core::mean(times_.at(way).us);
  return result;
}

LearnEvalReport Study::report() const {
  LearnEvalReport report{
      .devices = devices_, .outcomes = outcomes_, .unsure = unsure_, .advice = advice()};
  for (const auto& way : ways_)
    for (const auto spread : kBudgetSpreads) report.ways.push_back(summary(way, spread));
  return report;
}

/// Places of the devices of each split. Errors name the device.
Result<std::vector<std::vector<std::size_t>>> find_splits(const LearnEvalRequest& request,
                                                          const Samples& samples) {
  std::vector<std::vector<std::size_t>> splits;
  for (const auto& names : request.splits) {
    splits.emplace_back();
    for (const auto& name : names) {
      const auto found = std::ranges::find(samples.devices, name);
      if (found == samples.devices.end()) {
        return fail(
            ErrorCode::not_found,
            fmt::format("--leave-out: there is no device {} with latencies and features", name));
      }
      splits.back().push_back(static_cast<std::size_t>(found - samples.devices.begin()));
    }
    if (splits.back().size() + 3 > samples.devices.size())
      return fail(ErrorCode::invalid_input,
                  "--leave-out leaves fewer than three devices to learn from");
  }
  if (splits.empty()) return fail(ErrorCode::invalid_input, "--leave-out names no device");
  return splits;
}

/// The latencies of designs that few-shot transfer would measure, knowing these devices, as the
/// features of all devices.
Result<learned::KnownFeatures> chosen_references(const LearnEvalRequest& request,
                                                 const Samples& samples,
                                                 const space::DesignTable& table,
                                                 std::span<const std::size_t> known) {
  std::vector<std::size_t> columns;
  for (const auto device : known)
    columns.push_back(table.find_column(samples.devices[device]).value());
  FLEETFIT_ASSIGN(const auto devices,
                  transfer::KnownDevices::learn(table, columns, {.seed = request.training.seed}));
  space::Population candidates(samples.designs.genes());
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < samples.designs.size(); ++i) {
    bool is_known = true;
    for (std::size_t d = 0; d < samples.devices.size() && is_known; ++d)
      is_known = !std::isnan(samples.costs_on(0, d)[i]);
    if (!is_known) continue;
    rows.push_back(i);
    candidates.add(samples.designs[i]);
  }
  const auto chosen = devices.choose(candidates, request.choose_references);
  learned::KnownFeatures features;
  for (const auto place : chosen) {
    const learned::FeatureColumn column{.kind = learned::FeatureKind::reference_design,
                                        .name = samples.space->format(candidates[place]),
                                        .space = samples.space->name(),
                                        .version = samples.space->version()};
    features.names.push_back(column.text());
    features.is_reference.push_back(true);
  }
  for (std::size_t d = 0; d < samples.devices.size(); ++d)
    for (const auto place : chosen) features.values.push_back(samples.costs_on(0, d)[rows[place]]);
  return features;
}

}  // namespace

std::string_view name_of(BudgetSpread spread) {
  return spread == BudgetSpread::range ? "range" : "quantiles";
}

Result<LearnEvalReport> learn_eval(Workplace& workplace, const LearnEvalRequest& request,
                                   core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto space, space::find_space(request.data.space));
  const SourcePlace place{
      .space = *space, .workplace = workplace, .progress = progress, .stop = stop};
  FLEETFIT_ASSIGN(const auto sources, open_learn_sources(request.data, place));
  FLEETFIT_ASSIGN(const auto table, space::read_design_table(request.data.table, *space));
  auto samples = no_samples(sources);
  FLEETFIT_TRY(add_measured(sources, sources.candidates, samples));
  FLEETFIT_ASSIGN(const auto splits, find_splits(request, samples));
  FLEETFIT_ASSIGN(const auto folder, core::ScratchFolder::create());
  core::ThreadPool pool(request.training.threads);
  core::ProgressTask task(progress, {.name = "study", .total = splits.size(), .unit = "splits"});
  Study study(request, samples, table, pool, workplace.clock);
  double training_s = 0;
  for (std::size_t split = 0; split < splits.size(); ++split) {
    std::vector<std::size_t> known;
    for (std::size_t d = 0; d < samples.devices.size(); ++d)
      if (std::ranges::count(splits[split], d) == 0) known.push_back(d);
    if (request.choose_references > 0) {
      FLEETFIT_ASSIGN(samples.features, chosen_references(request, samples, table, known));
    }
    const auto start = workplace.clock.now();
    FLEETFIT_ASSIGN(auto model, run_learning(learned::of_devices(samples, known), request.training,
                                             folder.path() / fmt::format("{}.json", split), stop));
    training_s += std::chrono::duration<double>(workplace.clock.now() - start).count();
    FLEETFIT_TRY(study.look_at(model, splits[split], split, samples.features));
    task.advance();
  }
  auto report = study.report();
  report.space = space->name();
  report.method = request.training.method;
  report.training_s = training_s / static_cast<double>(splits.size());
  return report;
}

}  // namespace fleetfit::app
