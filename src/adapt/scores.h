#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fleetfit::adapt {

/// Of some images: what adds up to accuracy and confidence.
struct ScoreSums {
  double hits = 0;
  double confidence = 0;
};

/// The class with the highest score.
std::size_t best_class(std::span<const float> scores);

/// `scores` has as many for each image as there are classes, at least for as many images as there
/// are labels. They are logits or probabilities.
ScoreSums sum_scores(std::span<const float> scores, std::span<const std::int64_t> labels,
                     std::size_t classes);

}  // namespace fleetfit::adapt
