#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "engine/own/own.h"
#include "engine/own/rows.h"
#include "engine/threads.h"

namespace fleetfit::engine::own {

/// How tensors that numpy's rules bring to one shape are walked: in panels of rows that are small
/// enough for the nearest cache. The result lies densely.
class Broadcast {
 public:
  static constexpr std::size_t kMostOperands = 8;
  using Offsets = std::array<std::int64_t, kMostOperands>;

  /// Nothing if there are too many operands or one does not fit.
  static std::optional<Broadcast> make(const std::vector<Shape>& operands, const Shape& result);

  /// An operand's part of a panel.
  template <class T>
  RowsOf<T> rows(const T* data, std::size_t operand, const Offsets& offsets) const {
    return {data + offsets[operand], inner_.steps[operand], rows_.steps[operand]};
  }

  /// Whether an operand lies as the result does.
  bool is_whole(std::size_t operand) const;

  /// Calls body(extents, offsets, out) for every panel, on all threads: offsets of the operands and
  /// of the result's first element.
  template <class Body>
  void for_each_panel(const Body& body) const;

  /// Elements of the largest panel.
  static constexpr std::int64_t kPanel = 1024;

 private:
  struct Dim {
    std::int64_t extent = 1;
    Offsets steps = {};
  };
  struct Panel {
    Extents extents;
    Offsets offsets;
    std::int64_t out;
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
  parallel(planes_ * panels_per_plane(), grain_of(rows_per_panel_ * count_per_panel_),
           [&](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) {
               const Panel at = panel(i);
               body(at.extents, at.offsets, at.out);
             }
           });
}

}  // namespace fleetfit::engine::own
