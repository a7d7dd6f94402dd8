#include "predict/regressors/packed_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace fleetfit::predict {
namespace {

// Four floats that the compiler keeps in one register; as plain arrays they would go through
// memory.
constexpr std::size_t kLanes = 4;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

Lanes lanes_at(const float* values) {
  Lanes lanes;
  std::memcpy(&lanes, values, sizeof(lanes));
  return lanes;
}

constexpr std::size_t kTile = 2 * kLanes;  // outputs whose sums stay in registers
constexpr std::size_t kRows = 4;           // rows that share one reading of the weights

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

tl::unexpected<Error> broken(std::string what) {
  return fail(ErrorCode::invalid_input, std::move(what));
}

}  // namespace

PackedLayer::PackedLayer(const DenseLayer& layer) : inputs_(layer.inputs), outputs_(layer.outputs) {
  const std::size_t tiles = (outputs_ + kTile - 1) / kTile;
  weights_.resize(tiles * inputs_ * kTile);
  bias_.resize(tiles * kTile);
  std::copy(layer.bias.begin(), layer.bias.end(), bias_.begin());
  for (std::size_t i = 0; i < inputs_; ++i) {
    for (std::size_t o = 0; o < outputs_; ++o) {
      weights_[(o / kTile * inputs_ + i) * kTile + o % kTile] = layer.weights[i * outputs_ + o];
    }
  }
}

template <std::size_t rows>
void PackedLayer::apply_rows(const float* in, float* out, Activation activation) const {
  for (std::size_t first = 0; first < outputs_; first += kTile) {
    std::array<Lanes, rows> low;
    std::array<Lanes, rows> high;
    low.fill(lanes_at(&bias_[first]));
    high.fill(lanes_at(&bias_[first + kLanes]));
    const float* weights = &weights_[first * inputs_];
    for (std::size_t i = 0; i < inputs_; ++i, weights += kTile) {
      const Lanes low_weights = lanes_at(weights);
      const Lanes high_weights = lanes_at(weights + kLanes);
      for (std::size_t r = 0; r < rows; ++r) {
        const float value = in[r * inputs_ + i];
        low[r] += value * low_weights;
        high[r] += value * high_weights;
      }
    }
    const std::size_t count = std::min(kTile, outputs_ - first);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t o = 0; o < count; ++o) {
        const float sum = o < kLanes ? low[r][o] : high[r][o - kLanes];
        out[r * outputs_ + first + o] = activation == Activation::relu ? std::max(sum, 0.0F) : sum;
      }
    }
  }
}

void PackedLayer::apply(std::span<const float> in, std::span<float> out, std::size_t rows,
                        Activation activation) const {
  std::size_t row = 0;
  for (; row + kRows <= rows; row += kRows)
    apply_rows<kRows>(&in[row * inputs_], &out[row * outputs_], activation);
  for (; row < rows; ++row) apply_rows<1>(&in[row * inputs_], &out[row * outputs_], activation);
}

void apply_layers(std::span<const PackedLayer> layers, std::size_t rows, std::vector<float>& values,
                  Activation last) {
  std::vector<float> next;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    next.resize(rows * layers[l].outputs());
    layers[l].apply(values, next, rows, l + 1 < layers.size() ? Activation::relu : last);
    values.swap(next);
  }
}

std::vector<PackedLayer> pack(std::span<const DenseLayer> layers) {
  return {layers.begin(), layers.end()};
}

void scale_inputs(const InputScaling& scaling, std::span<const double> row, std::span<float> out) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double value = scaling.transform == Transform::plain
                             ? row[i]
                             : std::copysign(std::log1p(std::abs(row[i])), row[i]);
    out[i] = scaling.scale[i] == 0
                 ? 0.0F
                 : static_cast<float>((value - scaling.mean[i]) / scaling.scale[i]);
  }
}

double scaled_output(const OutputScaling& scaling, float value) {
  const double scaled = scaling.offset + scaling.scale * static_cast<double>(value);
  const double time = scaling.transform == Transform::logarithm ? std::exp(scaled) : scaled;
  return std::clamp(time, scaling.min, scaling.max);
}

Status check(const InputScaling& scaling) {
  if (scaling.mean.empty() || scaling.mean.size() != scaling.scale.size()) {
    return broken(fmt::format("inputs: {} means and {} scales do not fit together",
                              scaling.mean.size(), scaling.scale.size()));
  }
  if (!all_finite(scaling.mean)) return broken("inputs: a mean is not finite");
  if (!all_finite(scaling.scale) || *std::ranges::min_element(scaling.scale) < 0)
    return broken("inputs: a scale is negative or not finite");
  return {};
}

Status check(const OutputScaling& scaling) {
  if (!std::isfinite(scaling.offset) || !std::isfinite(scaling.scale))
    return broken("output: offset or scale is not finite");
  if (!std::isfinite(scaling.max) || !(scaling.min > 0) || scaling.min > scaling.max) {
    return broken(
        fmt::format("output: {} to {} is no range of positive times", scaling.min, scaling.max));
  }
  return {};
}

Status check_chain(std::span<const DenseLayer> layers, std::size_t inputs,
                   const std::string& name) {
  if (layers.empty()) return broken(fmt::format("{}: there are none", name));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto& layer = layers[l];
    const auto place = fmt::format("{}[{}]", name, l);
    if (layer.inputs != inputs || layer.outputs == 0) {
      return broken(fmt::format("{}: takes {} numbers and gives {}, but gets {}", place,
                                layer.inputs, layer.outputs, inputs));
    }
    if (layer.weights.size() != layer.inputs * layer.outputs ||
        layer.bias.size() != layer.outputs) {
      return broken(fmt::format("{}: {} weights and {} biases are not those of {} x {}", place,
                                layer.weights.size(), layer.bias.size(), layer.inputs,
                                layer.outputs));
    }
    if (!all_finite(layer.weights) || !all_finite(layer.bias))
      return broken(fmt::format("{}: a weight is not finite", place));
    inputs = layer.outputs;
  }
  return {};
}

}  // namespace fleetfit::predict
