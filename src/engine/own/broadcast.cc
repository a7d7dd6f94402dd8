#include "engine/own/broadcast.h"

namespace fleetfit::engine::own {
namespace {

std::int64_t parts(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

}  // namespace

bool Broadcast::follows(const Dim& outer, const Dim& inner, std::size_t operands) {
  for (std::size_t i = 0; i < operands; ++i) {
    if (outer.steps[i] != inner.steps[i] * inner.extent) return false;
  }
  return true;
}

std::optional<Broadcast> Broadcast::make(const std::vector<Shape>& operands, const Shape& result) {
  if (operands.size() > kMostOperands) return std::nullopt;
  std::vector<Dim> dims(result.size());
  for (std::size_t axis = 0; axis < result.size(); ++axis) dims[axis].extent = result[axis];
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Shape& shape = operands[i];
    if (shape.size() > result.size()) return std::nullopt;
    const std::size_t missing = result.size() - shape.size();
    const Ints strides = strides_of(shape);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      if (shape[axis] != result[axis + missing]) return std::nullopt;
      dims[axis + missing].steps[i] = strides[axis];
    }
  }
  std::vector<Dim> merged;
  for (const Dim& dim : dims) {
    if (dim.extent == 1) continue;
    if (!merged.empty() && follows(merged.back(), dim, operands.size())) {
      const std::int64_t extent = merged.back().extent * dim.extent;
      merged.back() = dim;
      merged.back().extent = extent;
    } else {
      merged.push_back(dim);
    }
  }
  Broadcast broadcast;
  broadcast.operands_ = operands.size();
  const auto take_last = [&](Dim& target) {
    if (merged.empty()) return;
    target = merged.back();
    merged.pop_back();
  };
  take_last(broadcast.inner_);
  take_last(broadcast.rows_);
  for (const Dim& dim : merged) broadcast.planes_ *= dim.extent;
  broadcast.outer_ = std::move(merged);
  broadcast.count_per_panel_ = std::min(broadcast.inner_.extent, kPanel);
  broadcast.rows_per_panel_ =
      std::clamp<std::int64_t>(kPanel / broadcast.inner_.extent, 1, broadcast.rows_.extent);
  return broadcast;
}

bool Broadcast::is_whole(std::size_t operand) const {
  return outer_.empty() && rows_.extent == 1 && inner_.steps[operand] == 1;
}

std::int64_t Broadcast::panels_per_plane() const {
  return parts(rows_.extent, rows_per_panel_) * parts(inner_.extent, count_per_panel_);
}

Broadcast::Panel Broadcast::panel(std::int64_t index) const {
  const std::int64_t across = parts(inner_.extent, count_per_panel_);
  const std::int64_t first = index % across * count_per_panel_;
  index /= across;
  const std::int64_t down = parts(rows_.extent, rows_per_panel_);
  const std::int64_t row = index % down * rows_per_panel_;
  std::int64_t plane = index / down;

  Panel panel{.extents = {std::min(rows_per_panel_, rows_.extent - row),
                          std::min(count_per_panel_, inner_.extent - first)},
              .offsets = {},
              .out = (plane * rows_.extent + row) * inner_.extent + first};
  for (std::size_t i = 0; i < operands_; ++i) {
    panel.offsets[i] = row * rows_.steps[i] + first * inner_.steps[i];
  }
  for (std::size_t axis = outer_.size(); axis-- > 0;) {
    const std::int64_t at = plane % outer_[axis].extent;
    plane /= outer_[axis].extent;
    for (std::size_t i = 0; i < operands_; ++i) panel.offsets[i] += at * outer_[axis].steps[i];
  }
  return panel;
}

}  // namespace fleetfit::engine::own
