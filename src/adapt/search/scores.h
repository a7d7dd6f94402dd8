#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fleetfit::adapt {

/// Of some images or pixels: what adds up to accuracy and confidence.
struct ScoreSums {
  double hits = 0;
  double confidence = 0;
  std::size_t labels = 0;
};

/// What a network says of an image: classes for it, or for each of its pixels.
struct ScoreForm {
  std::size_t classes = 0;
  std::size_t pixels = 1;

  bool operator==(const ScoreForm&) const = default;
};

/// The class with the highest score, of each label that the images have: one image after the other.
std::vector<std::int64_t> best_classes(std::span<const float> scores, const ScoreForm& form,
                                       std::size_t labels);

/// `scores` has for each image those of the first class for all pixels, then of the second, …, at
/// least for as many images as there are labels. They are logits or probabilities.
ScoreSums sum_scores(std::span<const float> scores, std::span<const std::int64_t> labels,
                     const ScoreForm& form);

}  // namespace fleetfit::adapt
