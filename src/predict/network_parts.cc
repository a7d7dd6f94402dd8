#include "fleetfit/predict/network_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "fleetfit/core/base64.h"
#include "fleetfit/core/fields.h"
#include "predict/packed_layer.h"

namespace fleetfit::predict {
namespace {

constexpr double kMaxWidth = 1 << 16;

// The bytes of the numbers, the lowest first, whatever the machine's order.
std::string bytes_of(std::span<const float> values) {
  std::string bytes;
  bytes.reserve(values.size() * 4);
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<char>((bits >> shift) & 0xff));
  }
  return bytes;
}

std::vector<float> numbers_of(std::string_view bytes) {
  std::vector<float> values(bytes.size() / 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < 4; ++byte)
      bits |= std::uint32_t{static_cast<unsigned char>(bytes[4 * i + byte])} << (8 * byte);
    values[i] = std::bit_cast<float>(bits);
  }
  return values;
}

template <std::vector<float> DenseLayer::* member>
Status read_floats(const core::JsonView& json, DenseLayer& layer) {
  FLEETFIT_ASSIGN(const auto text, json.as_text());
  const auto bytes = core::decode_base64(text);
  if (!bytes || bytes->size() % 4 != 0) return json.error("expected 32-bit floats in base64");
  layer.*member = numbers_of(*bytes);
  return {};
}

template <std::vector<float> DenseLayer::* member>
std::string write_floats(const DenseLayer& layer) {
  return core::encode_base64(bytes_of(layer.*member));
}

template <std::vector<float> DenseLayer::* member>
constexpr core::Field floats_field(std::string_view name) {
  return core::field_by<DenseLayer, read_floats<member>, write_floats<member>>(name);
}

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
constexpr std::size_t kRowsAtOnce = 4;     // rows that share one reading of the weights

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

core::Names names_of(Transform) {
  static constexpr core::Name kAll[] = {{Transform::plain, "plain"}, {Transform::logarithm, "log"}};
  return {.what = "transform", .all = kAll};
}

core::Fields fields_of(const InputScaling*) {
  static constexpr core::Field kAll[] = {FLEETFIT_MEMBERS(InputScaling, transform, mean, scale)};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const DenseLayer*) {
  static constexpr core::Field kAll[] = {
      core::field<&DenseLayer::inputs>("inputs").between(1, kMaxWidth),
      core::field<&DenseLayer::outputs>("outputs").between(1, kMaxWidth),
      floats_field<&DenseLayer::weights>("weights"), floats_field<&DenseLayer::bias>("bias")};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const OutputScaling*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(OutputScaling, transform, offset, scale, min, max)};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

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
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce)
    apply_rows<kRowsAtOnce>(&in[row * inputs_], &out[row * outputs_], activation);
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
    return refuse(fmt::format("inputs: {} means and {} scales do not fit together",
                              scaling.mean.size(), scaling.scale.size()));
  }
  if (!all_finite(scaling.mean)) return refuse("inputs: a mean is not finite");
  if (!all_finite(scaling.scale) || *std::ranges::min_element(scaling.scale) < 0)
    return refuse("inputs: a scale is negative or not finite");
  return {};
}

Status check(const OutputScaling& scaling) {
  if (!std::isfinite(scaling.offset) || !std::isfinite(scaling.scale))
    return refuse("output: offset or scale is not finite");
  if (!std::isfinite(scaling.max) || !(scaling.min > 0) || scaling.min > scaling.max) {
    return refuse(
        fmt::format("output: {} to {} is no range of positive times", scaling.min, scaling.max));
  }
  return {};
}

Status check_chain(std::span<const DenseLayer> layers, std::size_t inputs,
                   const std::string& name) {
  if (layers.empty()) return refuse(fmt::format("{}: there are none", name));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto& layer = layers[l];
    const auto place = fmt::format("{}[{}]", name, l);
    if (layer.inputs != inputs || layer.outputs == 0) {
      return refuse(fmt::format("{}: takes {} numbers and gives {}, but gets {}", place,
                                layer.inputs, layer.outputs, inputs));
    }
    if (layer.weights.size() != layer.inputs * layer.outputs ||
        layer.bias.size() != layer.outputs) {
      return refuse(fmt::format("{}: {} weights and {} biases are not those of {} x {}", place,
                                layer.weights.size(), layer.bias.size(), layer.inputs,
                                layer.outputs));
    }
    if (!all_finite(layer.weights) || !all_finite(layer.bias))
      return refuse(fmt::format("{}: a weight is not finite", place));
    inputs = layer.outputs;
  }
  return {};
}

}  // namespace fleetfit::predict
