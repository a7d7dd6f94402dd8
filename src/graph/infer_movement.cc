// Shapes of operators that move, join, cut, select and reduce.

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/operands.h"
#include "graph/shape_of.h"

namespace fleetfit::graph {
namespace {

tl::unexpected<Error> error_of(const auto& result) { return tl::unexpected<Error>(result.error()); }

/// Axes as sorted indices; `invalid_input` if one is out of range or named twice.
Result<std::set<std::size_t>> resolve_axes(const Ints& axes, std::size_t rank) {
  std::set<std::size_t> resolved;
  for (const auto axis : axes) {
    const auto index = resolve_axis(axis, rank);
    if (!index) return error_of(index);
    if (!resolved.insert(*index).second) return misfit("axis {} is named twice", axis);
  }
  return resolved;
}

Shape without_axes(const Shape& shape, const std::set<std::size_t>& axes) {
  Shape kept;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!axes.contains(i)) kept.push_back(shape[i]);
  }
  return kept;
}

/// A shape whose unknown extents are inserted as ones at `axes`.
Shape with_ones(const Shape& shape, const std::set<std::size_t>& axes) {
  Shape result;
  auto next = shape.begin();
  for (std::size_t i = 0; i < shape.size() + axes.size(); ++i)
    result.push_back(axes.contains(i) ? 1 : *next++);
  return result;
}

/// Number of steps from start towards end over an extent, ONNX's rules for negative and
/// overshooting bounds.
std::int64_t sliced_extent(std::int64_t extent, std::int64_t start, std::int64_t end,
                           std::int64_t step) {
  const auto from_end = [extent](std::int64_t bound) { return bound < 0 ? bound + extent : bound; };
  const bool forward = step > 0;
  const std::int64_t least = forward ? 0 : -1;
  const std::int64_t most = forward ? extent : extent - 1;
  start = std::clamp(from_end(start), forward ? least : 0,
                     std::max<std::int64_t>(most, forward ? least : 0));
  end = std::clamp(from_end(end), least, extent);
  const auto distance = forward ? end - start : start - end;
  if (distance <= 0 || extent == 0 || step == 0) return 0;
  // Negating the smallest step would overflow; any step beyond the distance gives one element.
  const auto stride = forward ? step : (step == INT64_MIN ? INT64_MAX : -step);
  return stride >= distance ? 1 : (distance + stride - 1) / stride;
}

Result<std::int64_t> product(const Ints& extents) { return element_count(extents); }

}  // namespace

Outcomes infer(const Elementwise& op, const Node&, const Operands& in) {
  const bool compares =
      op.kind >= ElementwiseKind::equal && op.kind <= ElementwiseKind::logical_xor;
  const auto dtype = compares ? DType::boolean : in.dtype(0);
  Shape shape;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in.shape(i) == nullptr) return open(dtype);
    auto sum = broadcast(shape, *in.shape(i));
    if (!sum) return error_of(sum);
    shape = std::move(*sum);
  }
  return one(dtype, shape);
}

Outcomes infer(const Where&, const Node&, const Operands& in) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (in.shape(i) == nullptr) return open(in.dtype(1));
  }
  const auto values = broadcast(*in.shape(1), *in.shape(2));
  if (!values) return error_of(values);
  const auto all = broadcast(*in.shape(0), *values);
  if (!all) return error_of(all);
  return one(in.dtype(1), *all);
}

Outcomes infer(const Concat& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  const auto axis = resolve_axis(op.axis, shape.size());
  if (!axis) return error_of(axis);
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in.shape(i) == nullptr) return open(in.dtype(0));
    Shape part = *in.shape(i);
    if (part.size() != shape.size())
      return misfit("{} and {} cannot be joined", to_string(shape), to_string(part));
    const auto extent = std::exchange(part[*axis], shape[*axis]);
    if (part != shape)
      return misfit("{} and {} cannot be joined", to_string(shape), to_string(*in.shape(i)));
    shape[*axis] += extent;
    if (auto count = element_count(shape); !count) return error_of(count);
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const Split& op, const Node& node, const Operands& in) {
  const auto parts = node.outputs.size();
  std::vector<Outcome> outcomes(parts, {in.dtype(0), std::nullopt});
  if (in.shape(0) == nullptr) return outcomes;
  const Shape& x = *in.shape(0);
  const auto axis = resolve_axis(op.axis, x.size());
  if (!axis) return error_of(axis);
  Ints sizes;
  if (in.has(1)) {
    const auto given = in.ints(1);
    if (!given) return outcomes;
    sizes = *given;
  } else {
    if (parts == 0) return misfit("no outputs");
    const auto count = static_cast<std::int64_t>(parts);
    sizes.assign(parts, (x[*axis] + count - 1) / count);
    sizes.back() = x[*axis] - (count - 1) * sizes.front();
  }
  if (sizes.size() != parts) return misfit("{} sizes for {} parts", sizes.size(), parts);
  std::int64_t left = x[*axis];
  for (std::size_t i = 0; i < parts; ++i) {
    if (sizes[i] < 0 || sizes[i] > left)
      return misfit("parts {} of an extent of {}", to_string(sizes), x[*axis]);
    left -= sizes[i];
    outcomes[i].shape = x;
    (*outcomes[i].shape)[*axis] = sizes[i];
  }
  if (left != 0) return misfit("parts {} of an extent of {}", to_string(sizes), x[*axis]);
  return outcomes;
}

Outcomes infer(const Slice& op, const Node&, const Operands& in) {
  const auto starts = in.ints(1);
  const auto ends = in.ints(2);
  if (in.shape(0) == nullptr || !starts || !ends) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  Ints axes(starts->size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (in.has(3)) {
    const auto given = in.ints(3);
    if (!given) return open(in.dtype(0));
    axes = *given;
  }
  Ints steps(starts->size(), 1);
  if (in.has(4)) {
    const auto given = in.ints(4);
    if (!given) return open(in.dtype(0));
    steps = *given;
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size()) {
    return misfit("{} starts, {} ends, {} axes, {} steps", starts->size(), ends->size(),
                  axes.size(), steps.size());
  }
  if (auto distinct = resolve_axes(axes, shape.size()); !distinct) return error_of(distinct);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) return misfit("a step of zero");
    auto& extent = shape[resolve_axis(axes[i], shape.size()).value()];
    extent = sliced_extent(extent, (*starts)[i], (*ends)[i], steps[i]);
  }
  const auto squeezed = resolve_axes(op.squeezed, shape.size());
  if (!squeezed) return error_of(squeezed);
  for (const auto axis : *squeezed) {
    if (shape[axis] != 1)
      return misfit("dimension {} has {} elements and cannot be dropped", axis, shape[axis]);
  }
  return one(in.dtype(0), without_axes(shape, *squeezed));
}

Outcomes infer(const Pad& op, const Node&, const Operands& in) {
  const auto pads = in.ints(1);
  if (in.shape(0) == nullptr || !pads) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  const auto rank = shape.size();
  if (pads->size() != 2 * rank) return misfit("{} pads for {} dimensions", pads->size(), rank);
  for (std::size_t i = 0; i < rank; ++i) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const auto begin = (*pads)[i];
    const auto end = (*pads)[rank + i];
    // std::abs of the lowest number would overflow.
    if (std::min(begin, end) < -kMost || std::max(begin, end) > kMost) {
      return misfit("pads are absurdly large");
    }
    if (op.mode == PadMode::reflect && (begin >= shape[i] || end >= shape[i]) &&
        (begin > 0 || end > 0)) {
      return misfit("{} elements cannot be reflected by {} and {}", shape[i], begin, end);
    }
    shape[i] += begin + end;
    if (shape[i] < 0) return misfit("pads leave nothing of dimension {}", i);
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const Resize&, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  if (const auto sizes = in.ints(3); sizes && !sizes->empty()) {
    if (sizes->size() != shape.size())
      return misfit("{} sizes for {} dimensions", sizes->size(), shape.size());
    return one(in.dtype(0), Shape(sizes->begin(), sizes->end()));
  }
  const auto scales = in.numbers(2);
  if (!scales || scales->empty()) return open(in.dtype(0));
  if (scales->size() != shape.size())
    return misfit("{} scales for {} dimensions", scales->size(), shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto extent = std::floor(static_cast<double>(shape[i]) * (*scales)[i]);
    if (!(extent >= 0 && extent < 0x1p40)) return misfit("a scale of {}", (*scales)[i]);
    shape[i] = static_cast<std::int64_t>(extent);
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const Transpose& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  if (op.perm.empty()) return one(in.dtype(0), Shape(x.rbegin(), x.rend()));
  if (op.perm.size() != x.size())
    return misfit("{} axes for {} dimensions", op.perm.size(), x.size());
  if (auto distinct = resolve_axes(op.perm, x.size()); !distinct) return error_of(distinct);
  Shape shape;
  for (const auto axis : op.perm) shape.push_back(x[resolve_axis(axis, x.size()).value()]);
  return one(in.dtype(0), shape);
}

Outcomes infer(const Reshape& op, const Node&, const Operands& in) {
  const auto wanted = in.ints(1);
  if (in.shape(0) == nullptr || !wanted) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  Shape shape = *wanted;
  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !op.allow_zero) {
      if (i >= x.size())
        return misfit("shape {} copies an extent that {} does not have", to_string(*wanted),
                      to_string(x));
      shape[i] = x[i];
    } else if (shape[i] == -1) {
      if (rest) return misfit("shape {} leaves two extents open", to_string(*wanted));
      rest = i;
      shape[i] = 1;
    }
  }
  const auto count = product(shape);
  if (!count) return error_of(count);
  const auto total = elements(x);
  if (rest) {
    if (*count == 0 || total % *count != 0)
      return misfit("{} cannot become {}", to_string(x), to_string(*wanted));
    shape[*rest] = total / *count;
  } else if (*count != total) {
    return misfit("{} cannot become {}", to_string(x), to_string(*wanted));
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const Flatten& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  const auto rank = static_cast<std::int64_t>(x.size());
  if (op.axis < -rank || op.axis > rank)
    return misfit("axis {} of a tensor of {} dimensions", op.axis, rank);
  const auto cut = x.begin() + (op.axis < 0 ? op.axis + rank : op.axis);
  return one(in.dtype(0), Shape{elements({x.begin(), cut}), elements({cut, x.end()})});
}

Outcomes infer(const Squeeze&, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  if (!in.has(1)) {
    Shape shape;
    std::copy_if(x.begin(), x.end(), std::back_inserter(shape),
                 [](std::int64_t extent) { return extent != 1; });
    return one(in.dtype(0), shape);
  }
  const auto given = in.ints(1);
  if (!given) return open(in.dtype(0));
  const auto axes = resolve_axes(*given, x.size());
  if (!axes) return error_of(axes);
  for (const auto axis : *axes) {
    if (x[axis] != 1)
      return misfit("dimension {} has {} elements and cannot be dropped", axis, x[axis]);
  }
  return one(in.dtype(0), without_axes(x, *axes));
}

Outcomes infer(const Unsqueeze&, const Node&, const Operands& in) {
  const auto given = in.ints(1);
  if (in.shape(0) == nullptr || !given) return open(in.dtype(0));
  const auto axes = resolve_axes(*given, in.shape(0)->size() + given->size());
  if (!axes) return error_of(axes);
  return one(in.dtype(0), with_ones(*in.shape(0), *axes));
}

Outcomes infer(const Expand&, const Node&, const Operands& in) {
  const auto wanted = in.ints(1);
  if (in.shape(0) == nullptr || !wanted) return open(in.dtype(0));
  if (auto count = element_count(*wanted); !count) return error_of(count);
  const auto shape = broadcast(*in.shape(0), *wanted);
  if (!shape) return error_of(shape);
  return one(in.dtype(0), *shape);
}

Outcomes infer(const Tile&, const Node&, const Operands& in) {
  const auto repeats = in.ints(1);
  if (in.shape(0) == nullptr || !repeats) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  if (repeats->size() != shape.size())
    return misfit("{} repeats for {} dimensions", repeats->size(), shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if ((*repeats)[i] < 0 || __builtin_mul_overflow(shape[i], (*repeats)[i], &shape[i])) {
      return misfit("{} repeats", (*repeats)[i]);
    }
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const Gather& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr || in.shape(1) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  const auto axis = resolve_axis(op.axis, x.size());
  if (!axis) return error_of(axis);
  const auto at = static_cast<std::ptrdiff_t>(*axis);
  Shape shape(x.begin(), x.begin() + at);
  shape.insert(shape.end(), in.shape(1)->begin(), in.shape(1)->end());
  shape.insert(shape.end(), x.begin() + at + 1, x.end());
  return one(in.dtype(0), shape);
}

Outcomes infer(const Stack& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in.shape(i) == nullptr) return open(in.dtype(0));
    if (*in.shape(i) != shape)
      return misfit("{} and {} cannot be stacked", to_string(shape), to_string(*in.shape(i)));
  }
  const auto axis = resolve_axis(op.axis, shape.size() + 1);
  if (!axis) return error_of(axis);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis),
               static_cast<std::int64_t>(in.size()));
  return one(in.dtype(0), shape);
}

Outcomes infer(const Unstack& op, const Node& node, const Operands& in) {
  std::vector<Outcome> outcomes(node.outputs.size(), {in.dtype(0), std::nullopt});
  if (in.shape(0) == nullptr) return outcomes;
  const Shape& x = *in.shape(0);
  const auto axis = resolve_axis(op.axis, x.size());
  if (!axis) return error_of(axis);
  if (x[*axis] != static_cast<std::int64_t>(outcomes.size())) {
    return misfit("{} outputs for an extent of {}", outcomes.size(), x[*axis]);
  }
  for (auto& outcome : outcomes) outcome.shape = without_axes(x, {*axis});
  return outcomes;
}

namespace {

struct Image {
  std::size_t channels = 1;
  std::size_t height = 2;
  std::size_t width = 3;
};

Image image_axes(Layout layout) { return layout == Layout::nchw ? Image{1, 2, 3} : Image{3, 1, 2}; }

Status check_block(const Shape& x, std::int64_t block) {
  if (x.size() != 4) return misfit("{} is no image", to_string(x));
  if (block < 1 || block > (1 << 20)) return misfit("a block of {}", block);
  return {};
}

}  // namespace

Outcomes infer(const DepthToSpace& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  if (auto ok = check_block(shape, op.block); !ok) return error_of(ok);
  const auto at = image_axes(op.layout);
  if (shape[at.channels] % (op.block * op.block) != 0) {
    return misfit("{} channels do not divide into blocks of {}", shape[at.channels],
                  op.block * op.block);
  }
  shape[at.channels] /= op.block * op.block;
  shape[at.height] *= op.block;
  shape[at.width] *= op.block;
  return one(in.dtype(0), shape);
}

Outcomes infer(const SpaceToDepth& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  if (auto ok = check_block(shape, op.block); !ok) return error_of(ok);
  const auto at = image_axes(op.layout);
  if (shape[at.height] % op.block != 0 || shape[at.width] % op.block != 0) {
    return misfit("{} does not divide into blocks of {}", to_string(shape), op.block);
  }
  if (shape[at.channels] > (std::int64_t{1} << 22))
    return misfit("{} is absurdly large", to_string(shape));
  shape[at.channels] *= op.block * op.block;
  shape[at.height] /= op.block;
  shape[at.width] /= op.block;
  return one(in.dtype(0), shape);
}

namespace {

/// Checks block and pads (or crops) of SpaceToBatch and BatchToSpace; gives the product of the
/// block.
Result<std::int64_t> check_blocks(const Shape& x, const Ints& block, const Ints& margins) {
  if (x.size() < block.size() + 1 || margins.size() != 2 * block.size()) {
    return misfit("{} blocks and {} margins for {}", block.size(), margins.size(), to_string(x));
  }
  const auto sane = [](std::int64_t v) { return v >= 0 && v <= (std::int64_t{1} << 30); };
  if (!std::all_of(margins.begin(), margins.end(), sane))
    return misfit("margins {}", to_string(margins));
  if (!std::all_of(block.begin(), block.end(), [&](std::int64_t b) { return b > 0 && sane(b); })) {
    return misfit("blocks {}", to_string(block));
  }
  return element_count(block);
}

}  // namespace

Outcomes infer(const SpaceToBatch&, const Node&, const Operands& in) {
  const auto block = in.ints(1);
  const auto pads = in.ints(2);
  if (in.shape(0) == nullptr || !block || !pads) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  const auto blocks = check_blocks(shape, *block, *pads);
  if (!blocks) return error_of(blocks);
  for (std::size_t i = 0; i < block->size(); ++i) {
    const auto padded = shape[i + 1] + (*pads)[2 * i] + (*pads)[2 * i + 1];
    if (padded % (*block)[i] != 0)
      return misfit("{} elements do not divide into blocks of {}", padded, (*block)[i]);
    shape[i + 1] = padded / (*block)[i];
  }
  if (__builtin_mul_overflow(shape[0], *blocks, shape.data()))
    return misfit("blocks {}", to_string(*block));
  return one(in.dtype(0), shape);
}

Outcomes infer(const BatchToSpace&, const Node&, const Operands& in) {
  const auto block = in.ints(1);
  const auto crops = in.ints(2);
  if (in.shape(0) == nullptr || !block || !crops) return open(in.dtype(0));
  Shape shape = *in.shape(0);
  const auto blocks = check_blocks(shape, *block, *crops);
  if (!blocks) return error_of(blocks);
  if (shape[0] % *blocks != 0)
    return misfit("a batch of {} does not divide into blocks {}", shape[0], to_string(*block));
  shape[0] /= *blocks;
  for (std::size_t i = 0; i < block->size(); ++i) {
    if (__builtin_mul_overflow(shape[i + 1], (*block)[i], &shape[i + 1]))
      return misfit("blocks {}", to_string(*block));
    shape[i + 1] -= (*crops)[2 * i] + (*crops)[2 * i + 1];
    if (shape[i + 1] < 0) return misfit("crops leave nothing of dimension {}", i + 1);
  }
  return one(in.dtype(0), shape);
}

Outcomes infer(const ChannelShuffle& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  if (x.size() < 2) return misfit("{} has no channels", to_string(x));
  const auto channels = op.layout == Layout::nchw ? x[1] : x.back();
  if (op.groups < 1 || channels % op.groups != 0)
    return misfit("{} channels do not divide into {} groups", channels, op.groups);
  return one(in.dtype(0), x);
}

namespace {

/// Shape after the given axes were reduced to one element each.
Shape reduced(const Shape& x, const std::set<std::size_t>& axes, bool keep_dims) {
  if (!keep_dims) return without_axes(x, axes);
  Shape shape = x;
  for (const auto axis : axes) shape[axis] = 1;
  return shape;
}

}  // namespace

Outcomes infer(const Reduce& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(in.dtype(0));
  const Shape& x = *in.shape(0);
  auto axes = resolve_axes(op.axes, x.size());
  if (!axes) return error_of(axes);
  if (op.axes.empty()) {
    for (std::size_t i = 0; i < x.size(); ++i) axes->insert(i);
  }
  return one(in.dtype(0), reduced(x, *axes, op.keep_dims));
}

Outcomes infer(const ArgExtreme& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(op.index_type);
  const auto axis = resolve_axis(op.axis, in.shape(0)->size());
  if (!axis) return error_of(axis);
  return one(op.index_type, reduced(*in.shape(0), {*axis}, op.keep_dims));
}

Outcomes infer(const TopK& op, const Node&, const Operands& in) {
  std::vector<Outcome> outcomes{{in.dtype(0), std::nullopt}, {DType::i64, std::nullopt}};
  const auto k = in.ints(1);
  if (in.shape(0) == nullptr || !k) return outcomes;
  Shape shape = *in.shape(0);
  const auto axis = resolve_axis(op.axis, shape.size());
  if (!axis) return error_of(axis);
  if (k->size() != 1 || k->front() < 0 || k->front() > shape[*axis])
    return misfit("the top {} of {}", to_string(*k), shape[*axis]);
  shape[*axis] = k->front();
  outcomes[0].shape = outcomes[1].shape = shape;
  return outcomes;
}

Outcomes infer(const ConstantOfShape& op, const Node&, const Operands& in) {
  return one(op.dtype, in.ints(0));
}

Outcomes infer(const ShapeOf& op, const Node&, const Operands& in) {
  if (in.shape(0) == nullptr) return open(op.index_type);
  return one(op.index_type, Shape{std::ssize(extents_of(op, *in.shape(0)))});
}

Outcomes infer(const Range&, const Node&, const Operands& in) {
  const auto start = in.numbers(0);
  const auto limit = in.numbers(1);
  const auto delta = in.numbers(2);
  if (!start || !limit || !delta) return open(in.dtype(0));
  if (start->size() != 1 || limit->size() != 1 || delta->size() != 1 || delta->front() == 0)
    return misfit("bounds are no numbers");
  const auto count = std::ceil((limit->front() - start->front()) / delta->front());
  if (!(count < 0x1p40)) return misfit("a range of {} elements", count);
  return one(in.dtype(0), Shape{static_cast<std::int64_t>(std::max(0.0, count))});
}

}  // namespace fleetfit::graph
