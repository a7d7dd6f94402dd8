#pragma once

#include <span>

namespace fleetfit::train {

/// How far Adam goes in a step, the same for all parameters: as if the means of gradients and of
/// their squares had been kept for ever, however few steps there were.
struct AdamRate {
  float decay = 0;         ///< part of the gradient
  float reach = 0;         ///< along the mean of gradients
  float square_reach = 1;  ///< of the root of the mean of squares
};

/// Of the step that `steps` counts: 1 for the first.
AdamRate adam_rate(double rate, double decay, int steps);

/// Moves parameters. All spans are of the same length; the means begin at 0.
void adam_step(const AdamRate& rate, std::span<const float> gradient, std::span<float> mean,
               std::span<float> square, std::span<float> values);

}  // namespace fleetfit::train
