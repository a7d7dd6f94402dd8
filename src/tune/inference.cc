#include "fleetfit/tune/inference.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <numeric>
#include <tuple>
#include <utility>

#include "fleetfit/core/clock.h"
#include "fleetfit/tune/sampler.h"
#include "tune/inference_settings.h"

namespace fleetfit::tune {
namespace {

constexpr SimulationOptions kQuick{.samples = 4000};
// How much worse than the best a setting between priced ones may look and still be worth a price:
// lines between powers of two are some percent off.
constexpr double kNearlyBest = 0.2;
// Batches that differ by less than this share of the best count as equal.
constexpr std::int64_t kCloseBatches = 8;
constexpr std::size_t kMostRefinements = 24;
// The best of many measurements is one that was lucky. It is measured once more, and so is the one
// that is the best then.
constexpr std::size_t kMostSecondLooks = 4;
// Of the one that is chosen, for what is reported of it: one alone may fall into a moment when the
// machine is slow.
constexpr int kLastLooks = 3;

/// How well a response meets the goal; less is better.
struct Score {
  int rank = 0;  ///< 0: good, 1: saturated, 2: not known
  double value = 0;

  auto operator<=>(const Score&) const = default;
};

Score score_of(const Response& response, const InferenceStudy& study) {
  if (study.goal == InferenceGoal::energy && !response.energy_mj) return {2, 0};
  if (response.saturated) return {1, -response.throughput};
  switch (study.goal) {
    case InferenceGoal::energy:
      return {0, *response.energy_mj};
    case InferenceGoal::throughput:
      return {0, -response.capacity()};
    default:
      return study.scenario.kind == ScenarioKind::offline ? Score{0, -response.throughput}
                                                          : Score{0, response.mean_ms};
  }
}

/// Differences below it come from rounding.
bool alike(const Score& a, const Score& b) {
  return a.rank == b.rank && std::abs(a.value - b.value) <= 1e-9 * std::abs(b.value);
}

bool nearly(const Score& score, const Score& best) {
  return score.rank == best.rank && score.value - best.value <= kNearlyBest * std::abs(best.value);
}

bool is_smaller(const InferenceSetting& a, const InferenceSetting& b) {
  return std::tuple(a.cores, a.threads, a.batch) < std::tuple(b.cores, b.threads, b.batch);
}

class Session {
 public:
  Session(const InferenceTuning& tuning, const PriceInference& price, const std::stop_token& stop)
      : tuning_(tuning), study_(tuning.study), prices_(tuning, price, stop) {}

  Status try_grid() {
    const auto choices = choices_of(study_);
    result_.settings = choices.count();
    for (const auto& rest : groups_of(choices)) {
      for (const auto batch : first_batches(choices.batches)) {
        FLEETFIT_TRY(prices_.price(with_batch(rest, batch)));
      }
    }
    for (std::size_t i = 0; i < kMostRefinements; ++i) {
      const auto next = next_to_price(choices);
      if (!next) break;
      FLEETFIT_TRY(prices_.price(*next));
    }
    return {};
  }

  Status try_samples() {
    result_.settings = study_.parameters.count().value_or(0);
    const auto sampler =
        make_sampler(study_.parameters, {.kind = tuning_.algorithm, .objectives = 1, .levels = 1});
    const core::Random random(tuning_.seed);
    std::size_t repeated = 0;
    for (std::size_t i = 0; prices_.asked() < tuning_.max_settings && repeated < 32; ++i) {
      auto draws = random.split(i);
      const auto point = sampler->suggest(i, {}, draws);
      auto setting = setting_of(study_.parameters, point);
      if (study_.scenario.kind == ScenarioKind::single) setting.batch = 1;
      const auto before = prices_.asked();
      FLEETFIT_TRY(prices_.price(setting));
      repeated = prices_.asked() == before ? repeated + 1 : 0;
      sampler->tell(observation(i, point, setting));
    }
    return {};
  }

  /// Measures what is best again until it was the best with its second measurement. Which of
  /// several that were measured twice is the best is luck again: what is reported of it are
  /// measurements that chose nothing.
  Status look_again() {
    choose_best();
    if (!result_.best || prices_.trials()[*result_.best].cost->predicted) return {};
    if (prices_.asked() > 1) {
      FLEETFIT_TRY(judge_again());
    }
    is_settled_ = true;
    return result_.best ? prices_.look_at(*result_.best, kLastLooks) : Status();
  }

  /// Responses of all that was priced, and the best of them.
  InferenceResult finish() {
    if (is_settled_) {
      prices_.respond_all();
    } else {
      choose_best();
    }
    result_.trials = std::move(prices_.trials());
    return std::move(result_);
  }

 private:
  Status judge_again() {
    std::vector<std::size_t> seen_twice;
    while (seen_twice.size() < kMostSecondLooks) {
      choose_best();
      if (!result_.best || std::ranges::count(seen_twice, *result_.best) > 0) break;
      FLEETFIT_TRY(prices_.look_at(*result_.best, 1));
      seen_twice.push_back(*result_.best);
    }
    choose_best_of(seen_twice);
    return {};
  }

  void choose_best() {
    std::vector<std::size_t> all(prices_.trials().size());
    std::iota(all.begin(), all.end(), 0);
    choose_best_of(all);
  }

  void choose_best_of(std::span<const std::size_t> numbers) {
    prices_.respond_all();
    result_.best.reset();
    for (const auto number : numbers) {
      const auto& trial = prices_.trials()[number];
      if (trial.cost && trial.asked && is_better(trial)) result_.best = number;
    }
  }

  static std::vector<InferenceSetting> groups_of(const InferenceChoices& choices) {
    std::vector<InferenceSetting> groups;
    for (const auto& precision : choices.precisions)
      for (const auto& cores : choices.cores)
        for (const auto& threads : choices.threads)
          groups.push_back({.cores = cores, .threads = threads, .precision = precision});
    return groups;
  }

  Score quick_score(const InferenceSetting& setting) {
    return score_of(prices_.respond(setting, kQuick), study_);
  }

  /// The best by what is known now, if it was not priced; else one beside it that could be better.
  std::optional<InferenceSetting> next_to_price(const InferenceChoices& choices) {
    std::optional<std::pair<Score, InferenceSetting>> best;
    for (const auto& rest : groups_of(choices)) {
      for (const auto batch : choices.batches) {
        const auto setting = with_batch(rest, batch);
        if (!prices_.costs_of(rest).reaches(batch) || prices_.has_failed(setting)) continue;
        const auto score = quick_score(setting);
        if (!best || score < best->first) best = {score, setting};
      }
    }
    if (!best) return std::nullopt;
    if (!prices_.costs_of(best->second).knows(best->second.batch)) return best->second;
    return neighbour(choices, best->second, best->first);
  }

  std::optional<InferenceSetting> neighbour(const InferenceChoices& choices,
                                            const InferenceSetting& best, const Score& score) {
    const auto& costs = prices_.costs_of(best);
    for (const auto& end : {costs.known_below(best.batch), costs.known_above(best.batch)}) {
      if (!end || std::abs(*end - best.batch) * kCloseBatches <= best.batch) continue;
      const auto middle = batch_between(choices.batches, best.batch, *end);
      if (!middle) continue;
      auto setting = with_batch(best, *middle);
      if (!prices_.has_failed(setting) && nearly(quick_score(setting), score)) return setting;
    }
    return std::nullopt;
  }

  /// The middle one of those strictly between.
  static std::optional<std::int64_t> batch_between(std::span<const std::int64_t> batches,
                                                   std::int64_t a, std::int64_t b) {
    const auto first = std::ranges::upper_bound(batches, std::min(a, b));
    const auto last = std::ranges::lower_bound(batches, std::max(a, b));
    if (first >= last) return std::nullopt;
    return *(first + (last - first) / 2);
  }

  Observation observation(std::size_t number, const Point& point, const InferenceSetting& setting) {
    Observation seen{.trial = number, .point = point, .values = {0}};
    if (prices_.has_failed(setting)) {
      seen.violation = 2;
      return seen;
    }
    const auto score = quick_score(setting);
    seen.values = {score.value};
    seen.violation = score.rank;
    return seen;
  }

  bool is_better(const InferenceTrial& trial) {
    const auto score = score_of(trial.response, study_);
    if (score.rank == 2) return false;
    if (!result_.best) return true;
    const auto& best = prices_.trials()[*result_.best];
    const auto best_score = score_of(best.response, study_);
    if (alike(score, best_score)) return is_smaller(trial.setting, best.setting);
    return score < best_score;
  }

  const InferenceTuning& tuning_;
  const InferenceStudy& study_;
  PricedSettings prices_;
  InferenceResult result_;
  bool is_settled_ = false;  // the best is chosen, whatever its last measurement says
};

}  // namespace

Result<InferenceResult> tune_inference(const InferenceTuning& tuning, const PriceInference& price,
                                       const std::stop_token& stop) {
  FLEETFIT_TRY(check_inference_parameters(tuning.study.parameters));
  const core::SystemClock clock;
  const auto start = clock.now();
  Session session(tuning, price, stop);
  const bool grid = tuning.algorithm == SamplerKind::grid || tuning.study.parameters.size() == 0;
  FLEETFIT_TRY(grid ? session.try_grid() : session.try_samples());
  FLEETFIT_TRY(session.look_again());
  auto result = session.finish();
  result.elapsed_s = std::chrono::duration<double>(clock.now() - start).count();
  return result;
}

std::function<BatchCost(std::int64_t)> batch_costs(const InferenceResult& result,
                                                   const InferenceSetting& setting) {
  BatchCosts costs;
  for (const auto& trial : result.trials) {
    auto same = trial.setting;
    same.batch = setting.batch;
    if (trial.cost && same == setting) costs.add(trial.setting.batch, trial.cost->cost);
  }
  return [costs](std::int64_t batch) { return costs.at(batch); };
}

std::optional<Inference> recommendation(const InferenceResult& result, std::string device) {
  if (!result.best) return std::nullopt;
  const auto& best = result.trials[*result.best];
  return Inference{.device = std::move(device),
                   .latency_ms = best.cost->cost.latency_ms,
                   .response_ms = best.response.mean_ms,
                   .throughput = best.response.throughput,
                   .energy_mj = best.response.energy_mj};
}

}  // namespace fleetfit::tune
