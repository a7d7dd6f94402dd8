#include <cstring>
#include <utility>

#include "graph/tflite/conversion.h"

namespace fleetfit::graph::tflite {
namespace {

/// Rows become columns.
std::vector<std::byte> transposed(std::span<const std::byte> matrix, std::size_t columns,
                                  std::size_t element_bytes) {
  std::vector<std::byte> result(matrix.size());
  const auto rows = columns == 0 ? 0 : matrix.size() / element_bytes / columns;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(&result[(column * rows + row) * element_bytes],
                  &matrix[(row * columns + column) * element_bytes], element_bytes);
    }
  }
  return result;
}

/// The tensor with its first and last dimension swapped, the first being of one element.
Tensor swapped(Tensor tensor) {
  if (tensor.data) {
    tensor.data = TensorData::own(transposed(tensor.data->bytes(),
                                             static_cast<std::size_t>(tensor.shape->back()),
                                             size_of(tensor.dtype)));
  }
  std::swap(tensor.shape->front(), tensor.shape->back());
  auto& quantization = tensor.quantization;
  if (quantization && quantization->axis == 0) {
    quantization->axis = 3;
  } else if (quantization && quantization->axis == 3) {
    quantization->axis = 0;
  }
  return tensor;
}

/// The constant below a conversion of weights (from float16 or quantized to float) if nobody else
/// reads either; else nothing.
std::optional<TensorId> constant_below(const Conversion& c, TensorId weights) {
  const auto& readers = c.progress.readers;
  const auto made = c.progress.made_by.find(weights);
  if (made == c.progress.made_by.end()) return std::nullopt;
  const auto& node = c.graph.nodes[made->second];
  if (!std::holds_alternative<Cast>(node.op) && !std::holds_alternative<Requantize>(node.op))
    return std::nullopt;
  const auto below = node.inputs[0];
  const auto& tensor = c.graph.tensor(below);
  const bool alone = readers[static_cast<std::size_t>(weights)] == 1 &&
                     readers[static_cast<std::size_t>(below)] == 1;
  if (!alone || !tensor.is_constant() || size_of(tensor.dtype) == 0 ||
      tensor.shape != c.graph.tensor(weights).shape)
    return std::nullopt;
  return below;
}

}  // namespace

Result<TensorId> depthwise_weights(Conversion& c, TensorId weights) {
  auto& done = c.progress.depthwise_weights;
  if (const auto known = done.find(weights); known != done.end()) return known->second;
  if (c.graph.tensor(weights).shape->front() != 1)
    return refuse("the first dimension of depthwise weights is not 1");
  if (size_of(c.graph.tensor(weights).dtype) == 0) return refuse("its weights are no numbers");

  const auto below = constant_below(c, weights);
  const auto& constant = c.graph.tensor(below.value_or(weights));
  if (constant.is_constant() && !c.progress.budget.take(constant.data->size_bytes()))
    return refuse("the file refers to the same weights again and again");
  const auto swap = [&](TensorId id) { c.graph.tensor(id) = swapped(c.graph.tensor(id)); };
  if (below) {
    swap(*below);
    swap(weights);
    return done[weights] = weights;
  }
  if (!constant.is_constant()) {
    const auto output =
        c.add_before(Transpose{{3, 1, 2, 0}}, {weights}, "weights", swapped(constant));
    return done[weights] = output;
  }
  if (c.progress.readers[static_cast<std::size_t>(weights)] == 1) {
    swap(weights);
    return done[weights] = weights;
  }
  return done[weights] = c.graph.add_tensor(swapped(constant));
}

}  // namespace fleetfit::graph::tflite
