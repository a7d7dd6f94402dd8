#include "fleetfit/tune/inference.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "fleetfit/core/clock.h"
#include "fleetfit/tune/sampler.h"
#include "tune/inference_choices.h"

namespace fleetfit::tune {
namespace {

constexpr SimulationOptions kQuick{.samples = 4000};
// How much worse than the best a setting between priced ones may look and still be worth a price:
// lines between powers of two are some percent off.
constexpr double kNearlyBest = 0.2;
// Batches that differ by less than this share of the best are not told apart.
constexpr std::int64_t kCloseBatches = 8;
constexpr std::size_t kMostRefinements = 24;
// The best of many measurements is one that was lucky. It is measured once more, and so is the one
// that is the best then.
constexpr std::size_t kMostSecondLooks = 4;
// Of the one that is chosen, for what is told of it: one alone may fall into a moment in which the
// machine is slow.
constexpr int kLastLooks = 3;

/// How well a response meets the goal; less is better.
struct Score {
  int rank = 0;  ///< 0: good, 1: saturated, 2: cannot be told
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

std::optional<double> between(const std::optional<double>& a, const std::optional<double>& b,
                              double share) {
  if (!a || !b) return std::nullopt;
  return std::lerp(*a, *b, share);
}

std::optional<RunSpread> between(const std::optional<RunSpread>& a,
                                 const std::optional<RunSpread>& b, double share) {
  if (!a || !b) return std::nullopt;
  return RunSpread{.mean_ms = std::lerp(a->mean_ms, b->mean_ms, share),
                   .p90_ms = std::lerp(a->p90_ms, b->p90_ms, share),
                   .p99_ms = std::lerp(a->p99_ms, b->p99_ms, share)};
}

BatchCost scaled(BatchCost cost, double factor) {
  cost.latency_ms *= factor;
  if (cost.energy_mj) *cost.energy_mj *= factor;
  if (cost.spread)
    cost.spread = RunSpread{.mean_ms = factor * cost.spread->mean_ms,
                            .p90_ms = factor * cost.spread->p90_ms,
                            .p99_ms = factor * cost.spread->p99_ms};
  return cost;
}

/// What batches cost on the same cores and threads, in the same precision.
class BatchCosts {
 public:
  void add(std::int64_t batch, const BatchCost& cost) { known_[batch] = cost; }

  /// What a batch costs in the rhythm of the scenario. Batches that are known without it only are
  /// taken to be slower by as much.
  void add_in_rhythm(std::int64_t batch, const BatchCost& cost) {
    const double slower = cost.mean_ms() / at(batch).mean_ms();
    in_rhythm_.insert(batch);
    for (auto& [other, known] : known_)
      if (!in_rhythm_.contains(other)) known = scaled(known, slower);
    known_[batch] = cost;
  }

  bool knows(std::int64_t batch) const { return known_.contains(batch); }
  bool reaches(std::int64_t batch) const {
    return !known_.empty() && known_.rbegin()->first >= batch;
  }

  /// By a line between those that are known; one smaller than all of them is filled up.
  BatchCost at(std::int64_t batch) const {
    const auto above = known_.lower_bound(batch);
    if (above == known_.end()) return known_.empty() ? BatchCost() : known_.rbegin()->second;
    if (above == known_.begin() || above->first == batch) return above->second;
    const auto& [low, below] = *std::prev(above);
    const double share = static_cast<double>(batch - low) / static_cast<double>(above->first - low);
    return {.latency_ms = std::lerp(below.latency_ms, above->second.latency_ms, share),
            .energy_mj = between(below.energy_mj, above->second.energy_mj, share),
            .spread = between(below.spread, above->second.spread, share)};
  }

  /// The nearest known ones on both sides.
  std::optional<std::int64_t> known_below(std::int64_t batch) const {
    const auto at = known_.lower_bound(batch);
    if (at == known_.begin()) return std::nullopt;
    return std::prev(at)->first;
  }
  std::optional<std::int64_t> known_above(std::int64_t batch) const {
    const auto at = known_.upper_bound(batch);
    if (at == known_.end()) return std::nullopt;
    return at->first;
  }

 private:
  std::map<std::int64_t, BatchCost> known_;
  std::set<std::int64_t> in_rhythm_;
};

class Session {
 public:
  Session(const InferenceTuning& tuning, const PriceInference& price, const std::stop_token& stop)
      : tuning_(tuning), study_(tuning.study), price_(price), stop_(stop) {}

  Status try_grid() {
    const auto choices = choices_of(study_);
    result_.settings = choices.count();
    for (const auto& rest : groups_of(choices)) {
      for (const auto batch : first_batches(choices.batches)) {
        FLEETFIT_TRY(price_with(rest, batch));
      }
    }
    for (std::size_t i = 0; i < kMostRefinements; ++i) {
      const auto next = next_to_price(choices);
      if (!next) break;
      FLEETFIT_TRY(price(*next, true));
    }
    return {};
  }

  Status try_samples() {
    result_.settings = study_.parameters.count().value_or(0);
    const auto sampler =
        make_sampler(study_.parameters, {.kind = tuning_.algorithm, .objectives = 1, .levels = 1});
    const core::Random random(tuning_.seed);
    std::size_t repeated = 0;
    for (std::size_t i = 0; priced_asked_ < tuning_.max_settings && repeated < 32; ++i) {
      auto draws = random.split(i);
      const auto point = sampler->suggest(i, {}, draws);
      auto setting = setting_of(study_.parameters, point);
      if (study_.scenario.kind == ScenarioKind::single) setting.batch = 1;
      const auto before = priced_asked_;
      auto rest = setting;
      FLEETFIT_TRY(price_with(rest, setting.batch));
      repeated = priced_asked_ == before ? repeated + 1 : 0;
      sampler->tell(observation(i, point, setting));
    }
    return {};
  }

  /// Measures what is best again until it was the best with its second measurement. Which of
  /// several that were measured twice is the best is luck again: what is told of it are
  /// measurements that chose nothing.
  Status look_again() {
    choose_best();
    if (!result_.best || result_.trials[*result_.best].cost->predicted) return {};
    if (priced_asked_ > 1) {
      FLEETFIT_TRY(judge_again());
    }
    is_settled_ = true;
    return result_.best ? look_at(*result_.best, kLastLooks) : Status();
  }

  /// Responses of all that was priced, and the best of them.
  InferenceResult finish() {
    if (is_settled_) {
      respond_all();
    } else {
      choose_best();
    }
    return std::move(result_);
  }

 private:
  Status judge_again() {
    std::vector<std::size_t> seen_twice;
    while (seen_twice.size() < kMostSecondLooks) {
      choose_best();
      if (!result_.best || std::ranges::count(seen_twice, *result_.best) > 0) break;
      FLEETFIT_TRY(look_at(*result_.best, 1));
      seen_twice.push_back(*result_.best);
    }
    choose_best_of(seen_twice);
    return {};
  }

  /// Measures a trial again, and single samples with it where its batches are not full, in the
  /// rhythm that the scenario has with it.
  Status look_at(std::size_t number, int looks) {
    auto& trial = result_.trials[number];
    const auto rhythm = rhythm_of(study_.scenario, trial.response);
    auto* one = find(with_batch(trial.setting, 1));
    const bool full = trial.response.run_samples >= batch_of(trial);
    if (rhythm && !full && one != nullptr && one != &trial && one->cost) {
      FLEETFIT_TRY(measure_again(*one, rhythm, looks));
    }
    return measure_again(trial, rhythm, looks);
  }

  static double batch_of(const InferenceTrial& trial) {
    return static_cast<double>(trial.setting.batch);
  }

  /// Of several looks the middle one counts; what it was before stays if all of them fail.
  Status measure_again(InferenceTrial& trial, const std::optional<Rhythm>& rhythm, int looks) {
    std::vector<InferenceCost> seen;
    for (int i = 0; i < looks; ++i) {
      if (stop_.stop_requested()) return stopped();
      auto cost = price_(trial.setting, rhythm);
      if (!cost && cost.error().code == ErrorCode::cancelled) return tl::unexpected(cost.error());
      if (cost) seen.push_back(*std::move(cost));
    }
    if (seen.empty()) return {};
    const auto middle = seen.begin() + (std::ssize(seen) - 1) / 2;
    std::ranges::nth_element(seen, middle, {}, [](const auto& one) { return one.cost.mean_ms(); });
    auto& costs = costs_of(trial.setting);
    if (rhythm) {
      costs.add_in_rhythm(trial.setting.batch, middle->cost);
    } else {
      costs.add(trial.setting.batch, middle->cost);
    }
    trial.cost = std::move(*middle);
    return {};
  }

  void respond_all() {
    for (auto& trial : result_.trials)
      if (trial.cost) trial.response = respond(trial.setting, {});
  }

  void choose_best() {
    std::vector<std::size_t> all(result_.trials.size());
    std::iota(all.begin(), all.end(), 0);
    choose_best_of(all);
  }

  void choose_best_of(std::span<const std::size_t> numbers) {
    respond_all();
    result_.best.reset();
    for (const auto number : numbers) {
      const auto& trial = result_.trials[number];
      if (trial.cost && trial.asked && is_better(trial)) result_.best = number;
    }
  }

  static Status stopped() { return fail(ErrorCode::cancelled, "inference tuning was stopped"); }

  static std::vector<InferenceSetting> groups_of(const InferenceChoices& choices) {
    std::vector<InferenceSetting> groups;
    for (const auto& precision : choices.precisions)
      for (const auto& cores : choices.cores)
        for (const auto& threads : choices.threads)
          groups.push_back({.cores = cores, .threads = threads, .precision = precision});
    return groups;
  }

  static InferenceSetting with_batch(InferenceSetting setting, std::int64_t batch) {
    setting.batch = batch;
    return setting;
  }

  BatchCosts& costs_of(const InferenceSetting& setting) {
    const auto key = with_batch(setting, 1);
    const auto at = std::ranges::find(costs_, key, &std::pair<InferenceSetting, BatchCosts>::first);
    if (at != costs_.end()) return at->second;
    return costs_.emplace_back(key, BatchCosts()).second;
  }

  InferenceTrial* find(const InferenceSetting& setting) {
    const auto at = std::ranges::find(result_.trials, setting, &InferenceTrial::setting);
    return at == result_.trials.end() ? nullptr : &*at;
  }

  bool forms_partial_batches() const {
    return study_.scenario.kind == ScenarioKind::server ||
           study_.scenario.kind == ScenarioKind::multistream;
  }

  /// Also a batch of one where batches need not be full.
  Status price_with(const InferenceSetting& rest, std::int64_t batch) {
    if (batch > 1 && forms_partial_batches()) {
      FLEETFIT_TRY(price(with_batch(rest, 1), false));
    }
    return price(with_batch(rest, batch), true);
  }

  Status price(const InferenceSetting& setting, bool asked) {
    if (auto* known = find(setting)) {
      if (asked && !known->asked) ++priced_asked_;
      known->asked = known->asked || asked;
      return {};
    }
    if (stop_.stop_requested()) return stopped();
    auto cost = price_(setting, std::nullopt);
    if (!cost && cost.error().code == ErrorCode::cancelled) return tl::unexpected(cost.error());
    InferenceTrial trial{.setting = setting, .asked = asked};
    if (asked) ++priced_asked_;
    if (cost) {
      costs_of(setting).add(setting.batch, cost->cost);
      trial.cost = *std::move(cost);
    } else {
      trial.reason = cost.error().message;
    }
    result_.trials.push_back(std::move(trial));
    return {};
  }

  Response respond(const InferenceSetting& setting, SimulationOptions options) {
    options.seed = tuning_.seed;
    const auto& costs = costs_of(setting);
    return simulate(
        study_.scenario, setting.batch, [&](std::int64_t n) { return costs.at(n); }, options);
  }

  Score quick_score(const InferenceSetting& setting) {
    return score_of(respond(setting, kQuick), study_);
  }

  /// The best by what is known now, if it was not priced; else one beside it that could be better.
  std::optional<InferenceSetting> next_to_price(const InferenceChoices& choices) {
    std::optional<std::pair<Score, InferenceSetting>> best;
    for (const auto& rest : groups_of(choices)) {
      for (const auto batch : choices.batches) {
        const auto setting = with_batch(rest, batch);
        if (!costs_of(rest).reaches(batch) || has_failed(setting)) continue;
        const auto score = quick_score(setting);
        if (!best || score < best->first) best = {score, setting};
      }
    }
    if (!best) return std::nullopt;
    if (!costs_of(best->second).knows(best->second.batch)) return best->second;
    return neighbour(choices, best->second, best->first);
  }

  bool has_failed(const InferenceSetting& setting) {
    const auto* known = find(setting);
    return known != nullptr && !known->cost;
  }

  std::optional<InferenceSetting> neighbour(const InferenceChoices& choices,
                                            const InferenceSetting& best, const Score& score) {
    const auto& costs = costs_of(best);
    for (const auto& end : {costs.known_below(best.batch), costs.known_above(best.batch)}) {
      if (!end || std::abs(*end - best.batch) * kCloseBatches <= best.batch) continue;
      const auto middle = batch_between(choices.batches, best.batch, *end);
      if (!middle) continue;
      auto setting = with_batch(best, *middle);
      if (!has_failed(setting) && nearly(quick_score(setting), score)) return setting;
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
    if (has_failed(setting)) {
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
    const auto& best = result_.trials[*result_.best];
    const auto best_score = score_of(best.response, study_);
    if (alike(score, best_score)) return is_smaller(trial.setting, best.setting);
    return score < best_score;
  }

  const InferenceTuning& tuning_;
  const InferenceStudy& study_;
  const PriceInference& price_;
  const std::stop_token& stop_;
  InferenceResult result_;
  std::size_t priced_asked_ = 0;
  bool is_settled_ = false;  // the best is chosen, whatever its last measurement says
  std::vector<std::pair<InferenceSetting, BatchCosts>> costs_;
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
