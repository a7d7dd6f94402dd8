#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/graph/operators.h"
#include "fleetfit/graph/tensor.h"

/// Copies of boxes of elements, whatever these mean.
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

/// Marks an index that takes the fill instead of an element.
inline constexpr std::int64_t kFill = -1;

/// Copies the elements whose indices are listed for each axis: padding, nearest neighbours, chosen
/// rows.
class PickedCopy {
 public:
  /// `indices` has a list for each axis of `source`: the index that each index of the result takes,
  /// or kFill. `fill` is the bytes of one element.
  PickedCopy(const graph::Shape& source, const std::vector<graph::Ints>& indices,
             std::vector<std::byte> fill);

  void run(const std::byte* from, std::byte* to) const;

 private:
  /// Neighbours in the result that are neighbours in the source, in bytes.
  struct Run {
    std::int64_t from = kFill;
    std::int64_t to = 0;
    std::int64_t bytes = 0;
  };

  void set_runs(const graph::Ints& indices, std::int64_t bytes);
  std::int64_t line_offset(std::int64_t line) const;
  void copy_run(const std::byte* line, std::byte* to, const Run& run) const;

  std::vector<graph::Ints> outer_;  ///< offsets in bytes, or kFill
  std::vector<Run> runs_;
  std::int64_t lines_ = 1;
  std::int64_t line_bytes_ = 0;
  std::vector<std::byte> fill_;
};

/// 0, 1, …, count - 1.
graph::Ints counting(std::int64_t count);

}  // namespace fleetfit::engine::own
