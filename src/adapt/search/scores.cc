#include "adapt/search/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace fleetfit::adapt {
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
