#include "fleetfit/app/learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/learn/learning_samples.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/plausible.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/learned/lessons.h"
#include "fleetfit/learned/samples.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

using learned::Samples;

constexpr double kMicroseconds = 1e6;

double seconds_since(const core::Clock& clock, std::chrono::nanoseconds start) {
  return std::chrono::duration<double>(clock.now() - start).count();
}

/// Places of candidates that are not among the samples, in random order.
std::vector<std::size_t> fresh_candidates(const LearnSources& sources, const Samples& samples,
                                          core::Random random) {
  std::vector<std::size_t> fresh;
  const auto& all = sources.candidates;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool is_known = false;
    for (std::size_t j = 0; j < samples.designs.size() && !is_known; ++j)
      is_known = std::ranges::equal(all.batch()[i], samples.designs.batch()[j]);
    if (!is_known) fresh.push_back(i);
  }
  random.shuffle(fresh);
  return fresh;
}

space::Population designs_at(const space::Population& all, std::span<const std::size_t> places) {
  space::Population some(all.genes());
  for (const auto place : places) some.add(all[place]);
  return some;
}

std::filesystem::path kept_samples(const LearnTrainRequest& request) {
  return request.output.string() + ".samples";
}

/// What was measured before a kill, if it was for this training.
std::optional<Samples> read_kept(const LearnTrainRequest& request, const LearnSources& sources) {
  auto kept = learned::read_samples(kept_samples(request));
  if (!kept || kept->space != sources.space || kept->devices != sources.devices ||
      kept->features.names != sources.features.names)
    return std::nullopt;
  return *std::move(kept);
}

/// Rounds of measuring where the networks disagree, training them again after each.
Result<Samples> explore(const LearnSources& sources, const LearnTrainRequest& request,
                        core::Progress& progress, const std::stop_token& stop) {
  const auto& exploration = request.exploration;
  const auto random = core::Random(request.training.seed).split("exploration");
  auto kept = read_kept(request, sources);
  auto samples = kept ? *std::move(kept) : no_samples(sources);
  core::ProgressTask task(progress,
                          {.name = "explore", .total = exploration.rounds + 1, .unit = "rounds"});
  if (samples.designs.size() == 0) {
    auto places = fresh_candidates(sources, samples, random.split("first"));
    places.resize(std::min(places.size(), exploration.first));
    FLEETFIT_TRY(add_measured(sources, designs_at(sources.candidates, places), samples));
    FLEETFIT_TRY(learned::write_samples(samples, kept_samples(request)));
  }
  task.advance();
  const std::size_t first = exploration.first;
  std::size_t round =
      samples.designs.size() > first
          ? (samples.designs.size() - first) / std::max<std::size_t>(exploration.each, 1)
          : 0;
  task.advance(std::min(round, exploration.rounds));
  for (; round < exploration.rounds; ++round) {
    auto training = request.training;
    training.method = "none";
    training.effort *= 0.5;
    FLEETFIT_ASSIGN(const auto model,
                    run_learning(samples, training, request.output.string() + ".round", stop));
    FLEETFIT_ASSIGN(const auto devices, learned::read_devices(model.parts().device, samples));
    constexpr std::size_t kLookedAt = 5000;
    auto places = fresh_candidates(sources, samples, random.split(round));
    places.resize(std::min(places.size(), kLookedAt));
    const auto candidates = designs_at(sources.candidates, places);
    const auto chosen = learned::choose_exploration(model, devices, candidates, exploration.each);
    FLEETFIT_TRY(add_measured(sources, designs_at(candidates, chosen), samples));
    FLEETFIT_TRY(learned::write_samples(samples, kept_samples(request)));
    task.advance();
  }
  return samples;
}

void remove_kept(const LearnTrainRequest& request) {
  std::error_code ignored;
  std::filesystem::remove(kept_samples(request), ignored);
  std::filesystem::remove(request.output.string() + ".round", ignored);
}

std::size_t count_measured(const Samples& samples) {
  std::size_t count = 0;
  for (const double value : samples.costs[0].values) count += std::isnan(value) ? 0 : 1;
  return count;
}

Status check(const LearnTrainRequest& request) {
  const auto& exploration = request.exploration;
  constexpr std::size_t kFewest = 30;
  if (exploration.rounds > 0 && exploration.first < kFewest) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("--first-designs is {}, at least {} are needed", exploration.first, kFewest));
  }
  if (request.data.table.empty() && request.data.measured.empty())
    return fail(ErrorCode::invalid_input, "neither --table nor --measure says what designs cost");
  if (request.data.table.empty() && exploration.first == 0) {
    return fail(ErrorCode::invalid_input,
                "without a table --first-designs has to say how many designs to measure");
  }
  const auto& method = request.training.method;
  if (method != "supervised" && method != "unsupervised") {
    return fail(ErrorCode::invalid_input,
                fmt::format("--method is '{}', expected supervised or unsupervised", method));
  }
  return {};
}

}  // namespace

Result<LearnTrainReport> learn_train(Workplace& workplace, const LearnTrainRequest& request,
                                     core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_TRY(check(request));
  const auto start = workplace.clock.now();
  FLEETFIT_ASSIGN(const auto space, space::find_space(request.data.space));
  const SourcePlace place{
      .space = *space, .workplace = workplace, .progress = progress, .stop = stop};
  FLEETFIT_ASSIGN(const auto sources, open_learn_sources(request.data, place));
  Result<Samples> samples = no_samples(sources);
  if (request.exploration.first > 0) {
    samples = explore(sources, request, progress, stop);
    FLEETFIT_TRY(samples);
  } else if (auto done = add_measured(sources, sources.candidates, *samples); !done) {
    return tl::unexpected(done.error());
  }
  FLEETFIT_ASSIGN(const auto model, run_learning(*samples, request.training, request.output, stop));
  remove_kept(request);
  const auto& latency = model.parts().costs[0];
  return LearnTrainReport{
      .space = space->name(),
      .devices = samples->devices,
      .designs = samples->designs.size(),
      .rounds = request.exploration.first > 0 ? request.exploration.rounds : 0,
      .measured = count_measured(*samples),
      .rank_correlation = latency.rank_correlation,
      .margin = std::expm1(latency.margin * std::hypot(latency.usual_spread, latency.noise)),
      .elapsed_s = seconds_since(workplace.clock, start)};
}

namespace {

Result<learned::Goal> goal_of(const LearnApplyRequest& request, const learned::Model& model) {
  const auto wrong = [](std::string what) {
    return fail(ErrorCode::invalid_input, std::move(what));
  };
  const std::size_t costs = model.parts().costs.size();
  const bool has_energy = costs > 1;
  learned::Goal goal{.most_risk = 1 - request.sure};
  if (!request.weights.empty()) {
    if (request.budget_ms || request.budget_mj)
      return wrong("--weights and budgets exclude each other");
    if (request.weights.size() > 2) return wrong("--weights has more than two numbers");
    const double energy = request.weights.size() == 2 ? request.weights[0] : 0;
    if (energy != 0 && !has_energy)
      return wrong("--weights weighs energy, but the model was not trained on energies");
    goal.weights.push_back(request.weights.back());
    if (has_energy) goal.weights.push_back(energy);
  } else {
    if (!request.budget_ms && !request.budget_mj)
      return wrong("neither --budget-ms nor --weights says what is wanted");
    if (request.budget_mj && !has_energy)
      return wrong("--budget-mj is given, but the model was not trained on energies");
    goal.limits.push_back(request.budget_ms.value_or(INFINITY));
    if (has_energy) goal.limits.push_back(request.budget_mj.value_or(INFINITY));
  }
  FLEETFIT_TRY(learned::check(goal, model));
  return goal;
}

// What networks say whose numbers a file has, and nobody trained.
Status check_answer(const learned::Answer& answer, const learned::Model& model) {
  const auto& costs = model.parts().costs;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const double value = answer.costs[i].value;
    if (value > 0 && core::is_within_reason(value) && core::is_within_reason(answer.costs[i].safe))
      continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("design {}: the model gives it a {} of {:g}",
                            model.space().format(answer.design), costs[i].name, value));
  }
  if (core::is_within_reason(answer.accuracy)) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("design {}: the model gives it an accuracy of {:g}",
                          model.space().format(answer.design), answer.accuracy));
}

}  // namespace

Result<LearnApplyReport> learn_apply(const LearnApplyRequest& request) {
  FLEETFIT_ASSIGN(const auto model, learned::read_model(request.model));
  FLEETFIT_ASSIGN(const auto features, learned::read_device_features(request.device_features));
  FLEETFIT_ASSIGN(const auto device, features.find_device(request.device));
  FLEETFIT_ASSIGN(const auto goal, goal_of(request, model));
  core::ThreadPool pool(request.threads);
  const core::SystemClock clock;
  const auto start = clock.now();
  FLEETFIT_ASSIGN(const auto vector, learned::device_of(model, features, device));
  const learned::DeviceJudge judge(model, vector);
  FLEETFIT_ASSIGN(auto answer, request.never_search
                                   ? Result<learned::Answer>(learned::answer(judge, goal))
                                   : learned::sure_answer(judge, goal, pool, request.seed));
  FLEETFIT_TRY(core::within(request.model.string(), check_answer(answer, model)));
  const double elapsed_us = kMicroseconds * seconds_since(clock, start);
  LearnApplyReport report{.space = &model.space(),
                          .device = request.device,
                          .answer = std::move(answer),
                          .distance = vector.distance / model.parts().device.parts().usual_distance,
                          .missing = vector.missing,
                          .elapsed_us = elapsed_us};
  for (const auto& cost : model.parts().costs) report.costs.push_back(cost.name);
  return report;
}

FLEETFIT_REPORT(LearnTrainReport, space, devices, designs, rounds, measured, rank_correlation,
                margin, elapsed_s)

Json to_json(const LearnApplyReport& report) {
  const auto& answer = report.answer;
  Json predicted;
  Json safe;
  Json spread;
  Json risk;
  for (std::size_t i = 0; i < report.costs.size(); ++i) {
    predicted[report.costs[i]] = answer.costs[i].value;
    safe[report.costs[i]] = answer.costs[i].safe;
    spread[report.costs[i]] = answer.costs[i].spread;
    risk[report.costs[i]] = answer.costs[i].risk;
  }
  predicted["accuracy"] = answer.accuracy;
  spread["accuracy"] = answer.accuracy_spread;
  auto doubts = Json::array();
  for (const auto doubt : answer.doubts) doubts.push_back(learned::to_string(doubt));
  return {{"design", report.space->format(answer.design)},
          {"space", report.space->name()},
          {"device", report.device},
          {"predicted", std::move(predicted)},
          {"safe", std::move(safe)},
          {"spread", std::move(spread)},
          {"risk", std::move(risk)},
          {"keeps_limits", answer.keeps_limits},
          {"by", answer.by_search ? "search" : "optimizer"},
          {"doubts", std::move(doubts)},
          {"distance", report.distance},
          {"missing_features", report.missing},
          {"judged", answer.judged},
          {"elapsed_us", report.elapsed_us}};
}

}  // namespace fleetfit::app
