#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/tensor_data.h"

namespace fleetfit::graph {

/// Extents of a tensor, outermost first. An empty shape is a scalar. No extent is negative.
using Shape = std::vector<std::int64_t>;

/// Number of elements. Fails with `invalid_input` on a negative extent, on more than 16 dimensions
/// and on more than 2^40 elements, which no real network has and arithmetic on which could
/// overflow.
Result<std::int64_t> element_count(const Shape& shape);

/// element_count for shapes that were checked before (all shapes of a valid graph).
std::int64_t elements(const Shape& shape);

/// "1x3x224x224"; a scalar is "scalar".
std::string to_string(const Shape& shape);

/// How whole numbers stand for real ones: real = scale * (stored - zero_point).
/// One scale for the whole tensor, or one for each index along `axis`.
struct Quantization {
  std::vector<float> scales;
  std::vector<std::int32_t> zero_points;  ///< as many as scales
  std::optional<int> axis;                ///< absent: one scale for the whole tensor

  bool operator==(const Quantization&) const = default;
};

/// A value that flows through the graph, or a constant.
struct Tensor {
  std::string name;  ///< as in the file; not always unique, ids are
  DType dtype = DType::unknown;
  std::optional<Shape> shape;  ///< absent when nobody can tell it before the network runs
  std::optional<Quantization> quantization;
  std::optional<TensorData> data;    ///< present in constants; as large as shape and dtype say
  std::vector<std::string> symbols;  ///< of an input: the name of each dimension that the file
                                     ///< leaves open, "" for fixed ones; empty when all are fixed

  bool is_constant() const { return data.has_value(); }
};

/// Index of a tensor in Graph::tensors.
using TensorId = std::int32_t;

/// An optional input that is left out.
inline constexpr TensorId kNoTensor = -1;

}  // namespace fleetfit::graph
