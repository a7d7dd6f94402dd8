#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/predict/network_parts.h"
#include "train/adam.h"

namespace fleetfit::train {

/// Numbers as a tensor that owns them.
at::Tensor tensor_of(std::span<const float> values, std::int64_t rows, std::int64_t columns);
at::Tensor tensor_of(std::span<const std::int64_t> values);
std::vector<float> numbers_of(const at::Tensor& tensor);

/// The numbers of each tensor, for checkpoints, and back; false if they do not fit.
std::vector<std::vector<float>> numbers_of(const std::vector<at::Tensor>& tensors);
bool put_numbers(const std::vector<std::vector<float>>& numbers,
                 const std::vector<at::Tensor>& tensors);

/// The weights and biases of dense layers, with the Adam optimizer.
class TorchParameters {
 public:
  explicit TorchParameters(double decay) : decay_(decay) {}

  /// A layer with random weights whose outputs are about as large as its inputs, ReLU reckoned
  /// with.
  void add_layer(std::size_t inputs, std::size_t outputs, core::Random random);

  std::size_t layers() const { return parameters_.size() / 2; }

  /// values x weights + bias of a layer.
  at::Tensor apply(std::size_t layer, const at::Tensor& values) const;

  /// Layers [first, last) with ReLU between them.
  at::Tensor apply_chain(std::size_t first, std::size_t last, at::Tensor values) const;

  /// A step of the optimizer towards a smaller mean of (value x slope + offset)^2.
  void learn(const at::Tensor& values, const at::Tensor& slope, const at::Tensor& offset,
             double rate);

  /// The same for all layers as one chain that is applied to rows.
  void learn_chain(const at::Tensor& rows, const at::Tensor& slope, const at::Tensor& offset,
                   double rate);

  /// What the parameters are now is what `kept` gives from now on.
  void keep();
  std::vector<predict::DenseLayer> kept(std::size_t first, std::size_t last) const;

 private:
  struct Parameter {
    at::Tensor value;
    std::vector<float> mean;    // of the gradient
    std::vector<float> square;  // of its square
    std::vector<float> kept;
  };

  void add(std::vector<float> values, std::size_t rows, std::size_t columns);
  static void step(Parameter& parameter, const at::Tensor& gradient, const AdamRate& rate);

  double decay_;
  int steps_ = 0;
  std::vector<Parameter> parameters_;  // weights and bias of each layer
};

}  // namespace fleetfit::train
