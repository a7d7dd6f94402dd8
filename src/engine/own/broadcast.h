#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "engine/own/own.h"

namespace fleetfit::engine::own {

/// How tensors that numpy's rules bring to one shape are walked: in panels of rows that are small
/// enough for the nearest cache. The result lies densely.
class Broadcast {
 public:
  static constexpr std::size_t kMostOperands = 8;
  using Offsets = std::array<std::int64_t, kMostOperands>;

  /// Some rows of the result.
  struct Panel {
    Extents extents;
    Offsets offsets;   ///< of the operands' first elements
    std::int64_t out;  ///< offset of the result's first element
  };

  /// Nothing if there are too many operands or one does not fit.
  static std::optional<Broadcast> make(const std::vector<Shape>& operands, const Shape& result);

  /// An operand's part of a panel.
  template <class T>
  RowsOf<T> rows(const T* data, std::size_t operand, const Panel& panel) const {
    return {data + panel.offsets[operand], inner_.steps[operand], rows_.steps[operand]};
  }

  /// Whether an operand lies as the result does.
  bool is_whole(std::size_t operand) const;

  /// Calls body(panel) for every panel, on all threads.
  template <class Body>
  void for_each_panel(const Body& body) const;

  /// Elements of the largest panel.
  static constexpr std::int64_t kPanel = 1024;

 private:
  struct Dim {
    std::int64_t extent = 1;
    Offsets steps = {};
  };

  static bool follows(const Dim& outer, const Dim& inner, std::size_t operands);
  Panel panel(std::int64_t index) const;
  std::int64_t panels_per_plane() const;

  std::size_t operands_ = 0;
  std::vector<Dim> outer_;
  Dim rows_;
  Dim inner_;
  std::int64_t planes_ = 1;
  std::int64_t rows_per_panel_ = 1;
  std::int64_t count_per_panel_ = 1;
};

template <class Body>
void Broadcast::for_each_panel(const Body& body) const {
  parallel_each(planes_ * panels_per_plane(), rows_per_panel_ * count_per_panel_,
                [&](std::int64_t i) { body(panel(i)); });
}

/// One after the other, the rows that `operand(i)` gives of each of `count` operands.
template <class Rows>
void combine_operands(graph::ElementwiseKind kind, std::size_t count, const Rows& operand,
                      const graph::Activation& activation, const Extents& extents, float* out) {
  combine_rows(kind, operand(0), operand(1), out, extents);
  for (std::size_t i = 2; i < count; ++i) {
    combine_rows(kind, {out, 1, extents.count}, operand(i), out, extents);
  }
  const std::int64_t elements = extents.rows * extents.count;
  if (kind == graph::ElementwiseKind::mean) {
    scale_row(out, 1.0F / static_cast<float>(count), out, elements);
  }
  if (activation) activate_row(activation, out, out, elements);
}

}  // namespace fleetfit::engine::own
