#include "graph/passes/constants.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace fleetfit::graph::rewrite {

std::vector<float> floats_in(const TensorData& data) {
  std::vector<float> values(data.size_bytes() / sizeof(float));
  data.copy_to(std::as_writable_bytes(std::span(values)));
  return values;
}

std::optional<std::vector<float>> float_values(const Graph& graph, TensorId id) {
  if (id == kNoTensor) return std::nullopt;
  const auto& tensor = graph.tensor(id);
  if (!tensor.data || tensor.dtype != DType::f32 || tensor.quantization) return std::nullopt;
  return floats_in(*tensor.data);
}

std::optional<double> single_value(const Graph& graph, TensorId id) {
  if (id == kNoTensor) return std::nullopt;
  const auto& tensor = graph.tensor(id);
  if (!tensor.data || tensor.quantization || tensor.data->size_bytes() != size_of(tensor.dtype))
    return std::nullopt;
  const auto numbers = constant_numbers(graph, id);
  if (!numbers || numbers->size() != 1) return std::nullopt;
  return numbers->front();
}

bool is_identity(const Ints& perm) {
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

Ints inverse(const Ints& perm) {
  Ints result(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    result[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return result;
}

Ints composed(const Ints& first, const Ints& second) { return permuted(first, second); }

namespace {

// Copies blocks of `unit` bytes in the order of an odometer over `extents` that moves by `strides`.
void gather_blocks(std::span<const std::byte> from, std::span<std::byte> to, const Shape& extents,
                   const Ints& strides, std::size_t unit) {
  const auto rank = extents.size();
  Ints index(rank, 0);
  std::size_t source = 0;
  for (std::size_t target = 0; target < to.size(); target += unit) {
    std::memcpy(&to[target], &from[source * unit], unit);
    for (std::size_t d = rank; d-- > 0;) {
      source += static_cast<std::size_t>(strides[d]);
      if (++index[d] < extents[d]) break;
      source -= static_cast<std::size_t>(strides[d] * extents[d]);
      index[d] = 0;
    }
  }
}

}  // namespace

TensorData transposed(const TensorData& data, DType type, const Shape& shape, const Ints& perm) {
  Ints strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return TensorData::derive(data,
                            [extents = permuted(shape, perm), strides = permuted(strides, perm),
                             unit = size_of(type)](std::span<std::byte> bytes) {
                              const std::vector<std::byte> before(bytes.begin(), bytes.end());
                              gather_blocks(before, bytes, extents, strides, unit);
                            });
}

std::optional<Quantization> transposed(const std::optional<Quantization>& quantization,
                                       const Ints& perm) {
  if (!quantization || !quantization->axis) return quantization;
  auto moved = *quantization;
  moved.axis = static_cast<int>(inverse(perm)[static_cast<std::size_t>(*quantization->axis)]);
  return moved;
}

Ints full_perm(const Transpose& transpose, std::size_t rank) {
  if (!transpose.perm.empty()) return transpose.perm;
  Ints perm(rank);
  for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(rank - 1 - i);
  return perm;
}

}  // namespace fleetfit::graph::rewrite
