#include "adapt/scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fleetfit::adapt {
namespace {

bool are_probabilities(std::span<const float> scores) {
  constexpr float kTolerance = 1e-3F;
  const float sum = std::accumulate(scores.begin(), scores.end(), 0.0F);
  return std::abs(sum - 1) < kTolerance &&
         std::ranges::all_of(scores, [](float score) { return score >= 0; });
}

double probability(std::span<const float> scores, std::size_t label) {
  if (are_probabilities(scores)) return scores[label];
  const double top = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - top);
  return std::exp(scores[label] - top) / sum;
}

}  // namespace

std::size_t best_class(std::span<const float> scores) {
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

ScoreSums sum_scores(std::span<const float> scores, std::span<const std::int64_t> labels,
                     std::size_t classes) {
  ScoreSums sums;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto of_image = scores.subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    sums.hits += best_class(of_image) == label ? 1 : 0;
    sums.confidence += probability(of_image, label);
  }
  return sums;
}

}  // namespace fleetfit::adapt
