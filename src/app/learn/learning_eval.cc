#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/learn/learning_samples.h"
#include "app/learn/learning_study.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::app {
namespace {

using learned::Samples;

std::vector<double> budgets_of(const LearningStudy::Truth& truth, BudgetSpread spread,
                               std::size_t count) {
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

std::string LearningStudy::advice() const {
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

Status LearningStudy::run(const Way& way, const Truth& truth) {
  if (std::ranges::count(ways_, way.name) == 0) ways_.push_back(way.name);
  for (const auto spread : kBudgetSpreads) FLEETFIT_TRY(run(way, truth, spread));
  return {};
}

Status LearningStudy::run(const Way& way, const Truth& truth, BudgetSpread spread) {
  for (const double budget : budgets_of(truth, spread, request_.budgets)) {
    const auto start = clock_.now();
    const auto row = way.choose(budget);
    const double us = std::chrono::duration<double, std::micro>(clock_.now() - start).count();
    FLEETFIT_TRY(row);
    times_us_[way.name].push_back(us);
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

void LearningStudy::judge_predictions(const Truth& truth, const learned::DeviceJudge& judge,
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

Status LearningStudy::look_at_device(const learned::Model& model,
                                     const transfer::KnownDevices* known,
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

Status LearningStudy::look_at(const learned::Model& model, std::span<const std::size_t> left_out,
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

LearnWay LearningStudy::summary(const std::string& way, BudgetSpread spread) const {
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
  result.answer_us = *core::mean(times_us_.at(way));
  return result;
}

LearnEvalReport LearningStudy::report() const {
  LearnEvalReport report{
      .devices = devices_, .outcomes = outcomes_, .unsure = unsure_, .advice = advice()};
  for (const auto& way : ways_)
    for (const auto spread : kBudgetSpreads) report.ways.push_back(summary(way, spread));
  return report;
}

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
  LearningStudy study(request, samples, table, pool, workplace.clock);
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

FLEETFIT_REPORT(LearnedDevice, device, split, srcc, mape, few_shot_srcc, few_shot_same_srcc,
                distance)

core::Fields fields_of(const LearnWay*) {
  using Way = LearnWay;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Way, way),
      core::computed("budgets", [](const Way& way) { return name_of(way.spread); }),
      FLEETFIT_MEMBERS(Way, cases, median_loss, p90_loss, mean_loss, kept, answer_us)};
  return {.all = kAll};
}

core::Fields fields_of(const LearnOutcome*) {
  using Outcome = LearnOutcome;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Outcome, device, way),
      core::computed("budgets", [](const Outcome& outcome) { return name_of(outcome.spread); }),
      FLEETFIT_MEMBERS(Outcome, budget_ms, latency_ms, accuracy, best_accuracy)};
  return {.all = kAll};
}

FLEETFIT_REPORT(LearnEvalReport, space, method, ways, devices, unsure, training_s, advice, outcomes)

}  // namespace fleetfit::app
