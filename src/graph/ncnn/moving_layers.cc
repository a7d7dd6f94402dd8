#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

constexpr std::int64_t kRest = -233;  // "whatever is left" in several layers
constexpr std::int64_t kToEnd = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeastAxis = -4;
constexpr std::int64_t kMostAxis = 3;

std::int64_t read_axis(Conversion& c, int id) {
  return c.params().integer({.id = id, .name = "axis", .low = kLeastAxis, .high = kMostAxis});
}

// --- Flatten, Reshape, Permute

void flatten(Conversion& c) {
  const auto blob = c.blob(0);
  c.output(0, c.add(Flatten{.axis = 1}, {blob.tensor}));
}

/// 0 copies the extent of the same name (not of the same position) from the input.
std::int64_t resolved_extent(Conversion& c, const Shape& extents, std::int64_t wanted,
                             std::size_t from_end) {
  if (wanted != 0) return wanted;
  if (from_end <= extents.size()) return extents[extents.size() - from_end];
  c.fail("it copies an extent that its input does not have");
  return 1;
}

void reshape(Conversion& c) {
  auto& p = c.params();
  const auto extent = [&](int id, std::string_view name) {
    return p.integer({.id = id, .name = name, .fallback = kRest, .low = kRest});
  };
  const std::array<std::int64_t, 4> wanted = {extent(0, "w"), extent(1, "h"), extent(11, "d"),
                                              extent(2, "c")};
  const auto blob = c.blob(0);
  const auto extents = c.extents(blob);
  Ints shape;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == kRest) continue;
    if (wanted[i] < -1) return c.fail(fmt::format("{} is no extent", wanted[i]));
    // The names of an image without depth: w is the last, h the one before, c the third last.
    const std::size_t from_end = i == 3 && wanted[2] == kRest ? 3 : i + 1;
    shape.insert(shape.begin(), resolved_extent(c, extents, wanted[i], from_end));
  }
  if (shape.empty()) return c.fail("it names no extent");
  if (p.flag(3, "permute") && blob.dims > 1)
    return c.unknown("reshaping with channels last is not supported");
  shape.insert(shape.begin(), 0);
  c.output(0, c.add(Reshape{}, {blob.tensor, c.ints("shape", shape)}));
}

/// Indexed by order_type, for C x H x W with the batch before it.
constexpr std::array<std::array<std::int64_t, 4>, 6> kOrders = {
    {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}}};

void permute(Conversion& c) {
  const auto type =
      static_cast<std::size_t>(c.params().integer({.id = 0, .name = "order_type", .high = 23}));
  const auto blob = c.blob(0);
  if (blob.dims == 4) return c.unknown("permuting four dimensions is not supported");
  const auto x = c.flat(blob);
  if (blob.dims == 1) return c.output(0, c.add(Identity{}, {x}));
  if (type >= (blob.dims == 2 ? 2U : kOrders.size()))
    return c.fail(fmt::format("order_type {} does not fit {} dimensions", type, blob.dims));
  const auto perm = blob.dims == 2 ? (type == 0 ? Ints{0, 1, 2} : Ints{0, 2, 1})
                                   : Ints(kOrders[type].begin(), kOrders[type].end());
  c.output(0, c.add(Transpose{.perm = perm}, {x}));
}

// --- Concat, Slice, Crop

void concat(Conversion& c) {
  std::vector<Blob> blobs;
  for (std::size_t i = 0; i < c.input_count(); ++i) blobs.push_back(c.blob(i));
  if (blobs.empty()) return c.fail("it has no inputs");
  const bool one_by_one =
      std::all_of(blobs.begin(), blobs.end(), [](const Blob& b) { return b.one_by_one; });
  std::vector<TensorId> inputs;
  for (const auto& blob : blobs) inputs.push_back(one_by_one ? blob.tensor : c.flat(blob));
  const auto y = c.add(Concat{.axis = Conversion::axis(blobs[0], read_axis(c, 0))}, inputs);
  return one_by_one ? c.output_one_by_one(y) : c.output(0, y);
}

/// Sizes of the parts; "the rest" is shared evenly between the parts from there on. Empty after a
/// mistake.
Ints part_sizes(Conversion& c, const Ints& wanted, std::int64_t total) {
  Ints sizes;
  std::int64_t taken = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto left = static_cast<std::int64_t>(wanted.size() - i);
    const auto size = wanted[i] == kRest ? (total - taken) / left : wanted[i];
    if (size < 0 || size > total - taken) {
      c.fail(fmt::format("part {} does not fit the extent {}", i + 1, total));
      return {};
    }
    sizes.push_back(size);
    taken += size;
  }
  if (taken != total) c.fail(fmt::format("parts of {} elements do not make up {}", taken, total));
  return sizes;
}

void slice(Conversion& c) {
  const auto wanted = c.params().integers(0, "slices");
  if (c.params().has(2)) return c.unknown("slicing at indices is not supported");
  if (wanted.size() != c.output_count() || wanted.empty())
    return c.fail(fmt::format("{} sizes for {} outputs", wanted.size(), c.output_count()));
  const auto blob = c.blob(0);
  const auto x = c.flat(blob);
  const auto extents = c.extents(blob);
  const auto ncnn_axis = read_axis(c, 1);
  const auto index =
      ncnn_axis < 0 ? ncnn_axis + static_cast<std::int64_t>(extents.size()) : ncnn_axis;
  if (extents.empty()) return c.unknown("the extents of its input are not known");
  if (index < 0 || index >= static_cast<std::int64_t>(extents.size()))
    return c.fail(fmt::format("it has no axis {}", ncnn_axis));
  const auto total = extents[static_cast<std::size_t>(index)];
  const auto sizes = part_sizes(c, wanted, total);
  if (c.failed()) return;
  const bool even = std::all_of(wanted.begin(), wanted.end(), [](auto w) { return w == kRest; }) &&
                    sizes.front() == sizes.back();
  std::vector<TensorId> inputs{x};
  if (!even) inputs.push_back(c.ints("sizes", sizes));
  const auto ids = c.add_many(Split{.axis = index + 1}, inputs, wanted.size());
  for (std::size_t i = 0; i < ids.size(); ++i) c.output(i, ids[i]);
}

struct Ranges {
  Ints starts;
  Ints ends;
  Ints axes;  // of the graph
};

/// The newer form: lists of starts, ends and axes. An end of 0 is the end of the dimension.
Ranges ranges_of_lists(Conversion& c, const Blob& blob) {
  auto& p = c.params();
  Ranges r{.starts = p.integers(9, "starts"), .ends = p.integers(10, "ends")};
  auto axes = p.integers(11, "axes");
  if (axes.empty()) {
    for (std::size_t i = 0; i < r.starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (r.ends.size() != r.starts.size() || axes.size() != r.starts.size()) {
    c.fail("its lists of starts, ends and axes differ in length");
    return {};
  }
  for (auto& start : r.starts) start = start == kRest ? 0 : start;
  for (auto& end : r.ends) {
    if (end == 0 || end == kRest || end == std::numeric_limits<std::int32_t>::max()) end = kToEnd;
  }
  for (const auto axis : axes) {
    if (axis < kLeastAxis || axis > kMostAxis) c.fail(fmt::format("there is no axis {}", axis));
    r.axes.push_back(Conversion::axis(Blob{.dims = blob.dims}, axis));
  }
  return r;
}

/// The older form: offset and extent by name, or the extents of a second blob.
Ranges ranges_of_offsets(Conversion& c, const Blob& blob) {
  auto& p = c.params();
  const auto reference = c.input_count() > 1 ? c.extents(c.blob(1)) : Shape{};
  Ranges r;
  const auto dims = blob.dims == 0 ? 3 : std::min(blob.dims, 3);
  for (int i = 0; i < dims; ++i) {  // w, h, c: from the innermost on
    const auto from_end = static_cast<std::size_t>(i) + 1;
    const auto start = p.integer({.id = i, .name = "offset"});
    auto extent = p.integer({.id = 3 + i, .name = "out extent", .low = kRest});
    const auto behind = p.integer({.id = 6 + i, .name = "offset from the end"});
    if (from_end <= reference.size()) extent = reference[reference.size() - from_end];
    if (start == 0 && extent <= 0 && behind == 0) continue;
    const auto rest = behind == 0 ? kToEnd : -behind;
    r.starts.push_back(start);
    r.ends.push_back(extent > 0 ? start + extent : rest);
    r.axes.push_back(-1 - i);
  }
  return r;
}

void crop(Conversion& c) {
  const auto blob = c.blob(0);
  const auto x = c.flat(blob);
  const auto r = c.params().has(9) ? ranges_of_lists(c, blob) : ranges_of_offsets(c, blob);
  if (r.axes.empty()) return c.output(0, c.add(Identity{}, {x}));
  c.output(0, c.add(Slice{}, {x, c.ints("starts", r.starts), c.ints("ends", r.ends),
                              c.ints("axes", r.axes)}));
}

// --- Squeeze, ExpandDims, Tile

void squeeze(Conversion& c) {
  const auto blob = c.blob(0);
  const auto extents = c.extents(blob);
  const auto dims = static_cast<std::int64_t>(extents.size());
  if (dims == 0) return c.unknown("the extents of its input are not known");
  Ints wanted = c.params().integers(3, "axes");
  for (int i = 0; i < 3; ++i) {  // squeeze_w, squeeze_h, squeeze_c
    if (c.params().flag(i, "squeeze")) wanted.push_back(-1 - i);
  }
  Ints axes;
  for (const auto axis : wanted) {
    const auto index = axis < 0 ? axis + dims : axis;
    // ncnn leaves dimensions alone that have more than one element or that are not there.
    if (index >= 0 && index < dims && extents[static_cast<std::size_t>(index)] == 1)
      axes.push_back(index + 1);
  }
  const auto x = c.flat(blob);
  if (axes.empty()) return c.output(0, c.add(Identity{}, {x}));
  if (static_cast<std::int64_t>(axes.size()) == dims)
    return c.output(0, c.add(Flatten{.axis = 1}, {x}));
  c.output(0, c.add(Squeeze{}, {x, c.ints("axes", axes)}));
}

void expand_dims(Conversion& c) {
  const auto blob = c.blob(0);
  const auto axes = c.params().integers(3, "axes");
  if (axes.empty() || blob.dims == 0)
    return c.unknown("ExpandDims without a list of axes is not supported");
  Ints ours;
  for (const auto axis : axes) {
    if (axis < kLeastAxis || axis > kMostAxis) return c.fail(fmt::format("no axis {}", axis));
    ours.push_back(axis < 0 ? axis : axis + 1);
  }
  const auto x = c.flat(blob);
  c.output(0, c.add(Unsqueeze{}, {x, c.ints("axes", ours)}));
}

void tile(Conversion& c) {
  const auto blob = c.blob(0);
  const auto repeats = c.params().integers(2, "repeats");
  const auto dims = static_cast<std::size_t>(blob.dims);
  if (dims == 0 || repeats.size() > dims)
    return c.unknown("tiling to more dimensions is not supported");
  Ints all(dims + 1, 1);
  std::copy(repeats.begin(), repeats.end(),
            all.end() - static_cast<std::ptrdiff_t>(repeats.size()));
  if (repeats.empty()) {
    const auto axis = read_axis(c, 0);
    const auto index = axis < 0 ? axis + blob.dims : axis;
    if (index < 0 || index >= blob.dims) return c.fail(fmt::format("it has no axis {}", axis));
    all[static_cast<std::size_t>(index) + 1] =
        c.params().integer({.id = 1, .name = "tiles", .fallback = 1, .low = 1});
  }
  const auto x = c.flat(blob);
  c.output(0, c.add(Tile{}, {x, c.ints("repeats", all)}));
}

constexpr std::array<LayerType, 9> kLayers = {{
    {"Flatten", flatten},
    {"Reshape", reshape},
    {"Permute", permute},
    {"Concat", concat},
    {"Slice", slice},
    {"Crop", crop},
    {"Squeeze", squeeze},
    {"ExpandDims", expand_dims},
    {"Tile", tile},
}};

}  // namespace

std::span<const LayerType> moving_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
