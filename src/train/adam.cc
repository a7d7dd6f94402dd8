#include "train/adam.h"

#include <cmath>
#include <cstddef>

#include "fleetfit/core/vectorize.h"

namespace fleetfit::train {
namespace {

constexpr float kMeanMemory = 0.9F;
constexpr float kSquareMemory = 0.999F;
constexpr float kTiny = 1e-8F;

// Small networks spend more time here than in products of matrices unless roots are taken of whole
// vectors.
FLEETFIT_VECTORIZE void move(const AdamRate rate, const float* gradient, float* mean, float* square,
                             float* values, std::size_t count) {
  FLEETFIT_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i] + rate.decay * values[i];
    mean[i] = kMeanMemory * mean[i] + (1 - kMeanMemory) * g;
    square[i] = kSquareMemory * square[i] + (1 - kSquareMemory) * g * g;
    values[i] -= rate.reach * mean[i] / (std::sqrt(square[i]) * rate.square_reach + kTiny);
  }
}

}  // namespace

AdamRate adam_rate(double rate, double decay, int steps) {
  const double mean_share = 1 - std::pow(double{kMeanMemory}, steps);
  const double square_share = 1 - std::pow(double{kSquareMemory}, steps);
  return {.decay = static_cast<float>(decay),
          .reach = static_cast<float>(rate / mean_share),
          .square_reach = static_cast<float>(1 / std::sqrt(square_share))};
}

void adam_step(const AdamRate& rate, std::span<const float> gradient, std::span<float> mean,
               std::span<float> square, std::span<float> values) {
  move(rate, gradient.data(), mean.data(), square.data(), values.data(), values.size());
}

}  // namespace fleetfit::train
