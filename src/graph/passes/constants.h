#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/graph/graph.h"

namespace fleetfit::graph::rewrite {

/// A copy of 32-bit floats.
std::vector<float> floats_in(const TensorData& data);

/// A copy of the values of a constant of 32-bit floats that is not quantized; nothing for others.
std::optional<std::vector<float>> float_values(const Graph& graph, TensorId id);

/// The value of a constant of one element, of any rank.
std::optional<double> single_value(const Graph& graph, TensorId id);

// Permutations as Transpose has them: output dimension i is input dimension perm[i].
bool is_identity(const Ints& perm);
Ints inverse(const Ints& perm);

/// One permutation for a Transpose by `first` followed by one by `second`.
Ints composed(const Ints& first, const Ints& second);

/// A list with one entry per dimension (a shape, pads, …), in the order of the transposed tensor.
template <class T>
std::vector<T> permuted(const std::vector<T>& values, const Ints& perm) {
  std::vector<T> result;
  result.reserve(values.size());
  for (const auto dimension : perm) result.push_back(values[static_cast<std::size_t>(dimension)]);
  return result;
}

/// What a Transpose makes of a constant.
TensorData transposed(const TensorData& data, DType type, const Shape& shape, const Ints& perm);

/// The quantization of a transposed tensor.
std::optional<Quantization> transposed(const std::optional<Quantization>& quantization,
                                       const Ints& perm);

/// The axis as a number from 0 on.
inline std::int64_t normalized_axis(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

/// The permutation of a Transpose on a tensor of this rank: no perm reverses the dimensions.
Ints full_perm(const Transpose& transpose, std::size_t rank);

}  // namespace fleetfit::graph::rewrite
