#include "train/validation.h"

#include <algorithm>
#include <cmath>

#include "fleetfit/predict/regressor.h"

namespace fleetfit::train {
namespace {

// How far beyond the times of training a prediction may go.
constexpr double kRoom = 4;

double transformed(double value, predict::Transform transform) {
  return transform == predict::Transform::plain ? value
                                                : std::copysign(std::log1p(std::abs(value)), value);
}

}  // namespace

double percent_error(std::span<const float> outputs, std::span<const double> ms,
                     const predict::OutputScaling& scaling) {
  std::vector<double> predicted(outputs.size());
  std::transform(outputs.begin(), outputs.end(), predicted.begin(),
                 [&](float value) { return predict::scaled_output(scaling, value); });
  return predict::mape_percent(predicted, ms);
}

std::size_t batch_size(std::size_t samples) {
  if (samples < 512) return 16;
  return samples < 8192 ? 32 : 64;
}

predict::OutputScaling fit_output(std::span<const double> ms, predict::Transform transform) {
  const auto count = static_cast<double>(ms.size());
  double mean = 0;
  for (const double time : ms) mean += std::log(time) / count;
  double square = 0;
  for (const double time : ms) square += std::pow(std::log(time) - mean, 2) / count;
  const auto [least, most] = std::minmax_element(ms.begin(), ms.end());
  predict::OutputScaling scaling{
      .transform = transform, .min = *least / kRoom, .max = *most * kRoom};
  if (transform == predict::Transform::logarithm) {
    scaling.offset = mean;
    scaling.scale = std::max(std::sqrt(square), 1e-3);
  } else {
    scaling.scale = std::exp(mean);
  }
  return scaling;
}

Targets make_targets(std::vector<double> ms, const predict::OutputScaling& scaling) {
  Targets targets;
  for (const double time : ms) {
    const bool log = scaling.transform == predict::Transform::logarithm;
    targets.slope.push_back(static_cast<float>(log ? scaling.scale : scaling.scale / time));
    targets.offset.push_back(
        static_cast<float>(log ? scaling.offset - std::log(time) : scaling.offset / time - 1));
  }
  targets.ms = std::move(ms);
  return targets;
}

predict::InputScaling fit_inputs(std::span<const double> rows, std::size_t columns,
                                 predict::Transform transform) {
  predict::InputScaling scaling{.transform = transform,
                                .mean = std::vector<double>(columns),
                                .scale = std::vector<double>(columns)};
  const std::size_t row_count = rows.size() / columns;
  const auto count = static_cast<double>(row_count);
  for (std::size_t i = 0; i < rows.size(); ++i)
    scaling.mean[i % columns] += transformed(rows[i], transform) / count;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double deviation = transformed(rows[i], transform) - scaling.mean[i % columns];
    scaling.scale[i % columns] += deviation * deviation / count;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const double deviation = std::sqrt(scaling.scale[c]);
    // What is left of a constant column is rounding.
    scaling.scale[c] = deviation > 1e-9 * std::abs(scaling.mean[c]) ? deviation : 0;
  }
  return scaling;
}

}  // namespace fleetfit::train
