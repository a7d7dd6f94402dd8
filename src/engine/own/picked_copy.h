#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/graph/operators.h"
#include "fleetfit/graph/tensor.h"

namespace fleetfit::engine::own {

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
