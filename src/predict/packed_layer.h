#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/network_parts.h"

/// What dense and graph networks at work have in common.
namespace fleetfit::predict {

enum class Activation { none, relu };

/// A dense layer with its weights in the order in which they are used.
class PackedLayer {
 public:
  explicit PackedLayer(const DenseLayer& layer);

  std::size_t inputs() const { return inputs_; }
  std::size_t outputs() const { return outputs_; }

  /// `in` holds rows x inputs() numbers, `out` gets rows x outputs(). A row's result does not
  /// depend on the rows beside it.
  void apply(std::span<const float> in, std::span<float> out, std::size_t rows,
             Activation activation) const;

 private:
  template <std::size_t rows>
  void apply_rows(const float* in, float* out, Activation activation) const;

  std::size_t inputs_;
  std::size_t outputs_;
  std::vector<float> weights_;  // of eight outputs at a time, input by input
  std::vector<float> bias_;
};

/// Layers one after the other with ReLU between them, and after the last if it says so.
void apply_layers(std::span<const PackedLayer> layers, std::size_t rows, std::vector<float>& values,
                  Activation last);

std::vector<PackedLayer> pack(std::span<const DenseLayer> layers);

/// These fail with `invalid_input`, naming the part.
Status check(const InputScaling& scaling);
Status check(const OutputScaling& scaling);
Status check_chain(std::span<const DenseLayer> layers, std::size_t inputs, const std::string& name);

}  // namespace fleetfit::predict
