#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/graph/operators.h"
#include "fleetfit/graph/tensor.h"

namespace fleetfit::engine::own {

/// One dimension of a copy: how many elements, and how far apart neighbours are on both sides.
struct CopyDim {
  std::int64_t extent = 1;
  std::int64_t from = 1;
  std::int64_t to = 1;
};

/// Copies a box of elements between two memories in which it lies differently: transposes, cuts,
/// joins, repeats. What can be merged or reordered to copy long rows is.
class StridedCopy {
 public:
  StridedCopy(std::vector<CopyDim> dims, std::size_t element_bytes);

  /// `from` and `to` point at the first element of the box.
  void run(const std::byte* from, std::byte* to) const;

 private:
  enum class Way { rows, fill, transpose, scattered };

  std::int64_t outer_count() const;
  void copy_line(const std::byte* from, std::byte* to) const;

  std::vector<CopyDim> outer_;
  CopyDim inner_;   ///< the dimension whose neighbours are closest in the result
  CopyDim across_;  ///< with `transpose`: the dimension whose neighbours are closest in the source
  Way way_ = Way::rows;
  std::size_t size_;
};

/// Axis i of the result is axis perm[i] of a tensor of this shape.
std::vector<CopyDim> permuted_dims(const graph::Shape& shape, const graph::Ints& perm);

}  // namespace fleetfit::engine::own
