#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "adapt/search/scores.h"
#include "fleetfit/adapt/guided.h"
#include "fleetfit/search/problem.h"

namespace fleetfit::adapt {
namespace {

// By how much, as a share, a table may be wrong about a subnet that is worth a try.
constexpr double kTableDoubt = 0.03;

/// A round as strategies see it.
class Round {
 public:
  Round(const SubnetProblem& problem, space::DesignBatch designs,
        std::span<const Evaluation> evaluations)
      : designs_(designs) {
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const double ms = problem.table.subnet_ms(problem.space.path(designs[i]));
      const double loss = -evaluations[i].score();
      rows_.insert(rows_.end(), {ms, loss});
      scores_.push_back({.violation = std::max(0.0, ms / problem.budget_ms - 1), .loss = loss});
    }
  }

  double latency_ms(std::size_t i) const { return rows_[2 * i]; }
  search::Outcome outcome() const {
    return {.designs = designs_, .scores = scores_, .objectives = {rows_, 2}};
  }

 private:
  space::DesignBatch designs_;
  std::vector<double> rows_;
  std::vector<search::Score> scores_;
};

}  // namespace

Result<SearchedSubnets> search_subnets(const SubnetProblem& problem, SubnetQuality& quality,
                                       search::Strategy& strategy,
                                       const SearchSubnetsOptions& options) {
  SearchedSubnets searched;
  space::Population designs(problem.space.genes().size());
  while (true) {
    strategy.propose(designs);
    if (designs.size() == 0) return searched;
    const auto evaluations = quality.evaluate(designs);
    if (!evaluations && options.stop.stop_requested() && !searched.subnets.empty()) {
      searched.stopped = true;
      return searched;
    }
    FLEETFIT_TRY(evaluations);
    const Round round(problem, designs, *evaluations);
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto design = std::as_const(designs)[i];
      searched.subnets.push_back({.design = {design.begin(), design.end()},
                                  .latency_ms = round.latency_ms(i),
                                  .evaluation = (*evaluations)[i]});
    }
    if (options.observe) options.observe(searched);
    strategy.tell(round.outcome());
  }
}

Finalists finalists(const SearchedSubnets& searched, double budget_ms,
                    const FinalistOptions& options) {
  const auto& subnets = searched.subnets;
  std::vector<std::size_t> order(subnets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return subnets[i].evaluation.score(); });
  Finalists chosen;
  const auto take_within = [&](double limit_ms, std::size_t count) {
    for (const std::size_t i : order) {
      if (count == 0) return;
      if (subnets[i].latency_ms > limit_ms) continue;
      --count;
      if (std::ranges::find(chosen.near, i) == chosen.near.end()) chosen.near.push_back(i);
    }
  };
  take_within(budget_ms * (1 + kTableDoubt), options.near);
  take_within(budget_ms * (1 - kTableDoubt), (options.near + 1) / 2);
  take_within(budget_ms * (1 - 3 * kTableDoubt), (options.near + 3) / 4);
  std::vector<double> points;
  for (const auto& subnet : subnets)
    points.insert(points.end(), {subnet.latency_ms, -subnet.evaluation.score()});
  const auto pareto = search::pareto_set({points, 2});
  const std::size_t levels = std::min(options.levels, pareto.size());
  for (std::size_t level = 0; level < levels; ++level)
    chosen.levels.push_back(pareto[levels == 1 ? 0 : level * (pareto.size() - 1) / (levels - 1)]);
  return chosen;
}

namespace {

bool are_probabilities(std::span<const float> scores) {
  constexpr float kTolerance = 1e-3F;
  const float sum = std::accumulate(scores.begin(), scores.end(), 0.0F);
  return std::abs(sum - 1) < kTolerance &&
         std::ranges::all_of(scores, [](float score) { return score >= 0; });
}

/// By how much the label's score is above the best of the others, on the scale of logits.
double margin(std::span<const float> scores, std::size_t label) {
  constexpr float kLeast = 1e-30F;
  float best_other = std::numeric_limits<float>::lowest();
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (i != label) best_other = std::max(best_other, scores[i]);
  if (!are_probabilities(scores)) return static_cast<double>(scores[label]) - best_other;
  return std::log(std::max(scores[label], kLeast)) - std::log(std::max(best_other, kLeast));
}

/// Networks that were trained otherwise are surer of all that they say, right or wrong, so margins
/// count relative to what is usual in these images.
double sum_confidence(std::span<const double> margins) {
  constexpr double kSharpness = 3;
  double squares = 0;
  for (const double value : margins) squares += value * value;
  const double usual = std::sqrt(squares / static_cast<double>(margins.size()));
  double sum = 0;
  for (const double value : margins)
    sum += 1 / (1 + std::exp(usual > 0 ? -kSharpness * value / usual : 0));
  return sum;
}

/// The scores that belong to a label.
class ScoresOfLabels {
 public:
  ScoresOfLabels(std::span<const float> scores, const ScoreForm& form)
      : scores_(scores), form_(form), gathered_(form.classes) {}

  /// Valid until the next call.
  std::span<const float> operator[](std::size_t label) {
    if (form_.pixels == 1) return scores_.subspan(label * form_.classes, form_.classes);
    const std::size_t first =
        label / form_.pixels * form_.classes * form_.pixels + label % form_.pixels;
    for (std::size_t c = 0; c < form_.classes; ++c)
      gathered_[c] = scores_[first + c * form_.pixels];
    return gathered_;
  }

 private:
  std::span<const float> scores_;
  ScoreForm form_;
  std::vector<float> gathered_;
};

std::size_t best_class(std::span<const float> scores) {
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

}  // namespace

std::vector<std::int64_t> best_classes(std::span<const float> scores, const ScoreForm& form,
                                       std::size_t labels) {
  ScoresOfLabels of(scores, form);
  std::vector<std::int64_t> classes;
  for (std::size_t i = 0; i < labels; ++i)
    classes.push_back(static_cast<std::int64_t>(best_class(of[i])));
  return classes;
}

ScoreSums sum_scores(std::span<const float> scores, std::span<const std::int64_t> labels,
                     const ScoreForm& form) {
  ScoresOfLabels of(scores, form);
  ScoreSums sums{.labels = labels.size()};
  std::vector<double> margins;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto own = of[i];
    const auto label = static_cast<std::size_t>(labels[i]);
    sums.hits += best_class(own) == label ? 1 : 0;
    margins.push_back(margin(own, label));
  }
  sums.confidence = sum_confidence(margins);
  return sums;
}

}  // namespace fleetfit::adapt
