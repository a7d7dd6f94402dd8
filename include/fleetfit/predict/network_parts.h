#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fleetfit::core {
struct Fields;
struct Names;
}  // namespace fleetfit::core

/// What networks that were trained are made of, as plain numbers: the trainer fills these, the
/// networks at work take them. Reading them checks types and that numbers are there, not that the
/// parts fit together.
namespace fleetfit::predict {

enum class Transform : std::uint8_t {
  plain,
  logarithm,  ///< sign(x) ln(1 + |x|) of an input, ln(y) of an output
};
core::Names names_of(Transform);

/// How inputs are brought to a common size: (transformed - mean) / scale. A scale of 0 is that of a
/// feature that never changed in training; it counts for nothing.
struct InputScaling {
  Transform transform = Transform::plain;
  std::vector<double> mean;
  std::vector<double> scale;
};
core::Fields fields_of(const InputScaling*);

/// outputs = inputs x weights + bias. Weights lie input by input, a row of `outputs` for each.
struct DenseLayer {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::vector<float> weights;
  std::vector<float> bias;
};
core::Fields fields_of(const DenseLayer*);

/// How the last layer's number becomes a time: offset + scale x number, then the inverse of the
/// transform, kept between min and max, which are positive: what training saw, with some room.
struct OutputScaling {
  Transform transform = Transform::plain;
  double offset = 0;
  double scale = 1;
  double min = 0;
  double max = 0;
};
core::Fields fields_of(const OutputScaling*);

/// One row of numbers as a network takes them; both have a place for each feature.
void scale_inputs(const InputScaling& scaling, std::span<const double> row, std::span<float> out);

double scaled_output(const OutputScaling& scaling, float value);

}  // namespace fleetfit::predict
