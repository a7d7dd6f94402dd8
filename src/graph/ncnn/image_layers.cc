#include <fmt/format.h>

#include <array>
#include <map>
#include <span>
#include <string>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

constexpr std::int64_t kMostWindow = 1 << 20;

// --- Pooling

void read_pads(Conversion& c, int spatial, Window& window) {
  const auto pad = [&](int id, std::string_view name, std::int64_t fallback) {
    return c.params().integer({.id = id, .name = name, .fallback = fallback, .high = kMostWindow});
  };
  const auto left = pad(3, "pad_left", 0);
  window.pads_begin = {left};
  window.pads_end = {pad(14, "pad_right", left)};
  if (spatial == 1) return;
  const auto top = pad(13, "pad_top", left);
  window.pads_begin.insert(window.pads_begin.begin(), top);
  window.pads_end.insert(window.pads_end.begin(), pad(15, "pad_bottom", top));
}

Pool read_pool(Conversion& c, int spatial, PoolKind kind) {
  Pool pool{.kind = kind};
  auto& window = pool.window;
  const auto axes = static_cast<std::size_t>(spatial);
  window.kernel = c.params().by_axis(
      spatial, {.id = 1, .name = "kernel", .fallback = 1, .low = 1, .high = kMostWindow});
  window.strides = c.params().by_axis(
      spatial, {.id = 2, .name = "stride", .fallback = 1, .low = 1, .high = kMostWindow});
  window.dilations = Ints(axes, 1);
  window.pads_begin = window.pads_end = Ints(axes, 0);
  if (!c.params().has(1)) c.fail("parameter 1 (kernel) is missing");
  switch (c.params().integer({.id = 5, .name = "pad_mode", .high = 3})) {
    case 0:  // every element is seen: windows may hang over the end
      window.ceil_mode = true;
      read_pads(c, spatial, window);
      break;
    case 1:
      read_pads(c, spatial, window);
      break;
    case 2:
      window.auto_pad = AutoPad::same_upper;
      break;
    default:
      window.auto_pad = AutoPad::same_lower;
      break;
  }
  pool.count_include_pad =
      kind == PoolKind::average && c.params().flag(6, "avgpool_count_include_pad");
  return pool;
}

/// Pooling to a fixed number of outputs, which is an ordinary window only if that divides the
/// extent.
void adaptive_pooling(Conversion& c, int spatial, PoolKind kind) {
  const auto blob = c.blob(0);
  const auto extents = c.extents(blob);
  auto wanted = c.params().by_axis(spatial, {.id = 8, .name = "out_w", .low = -233});
  const auto axes = static_cast<std::size_t>(spatial);
  if (extents.size() != axes + 1) return c.unknown("the extents of its input are not known");
  Pool pool{.kind = kind};
  bool is_one = true;
  for (std::size_t i = 0; i < axes; ++i) {
    const auto extent = extents[i + 1];
    const auto out = wanted[i] == -233 ? extent : wanted[i];
    if (out < 1 || extent % out != 0)
      return c.unknown(fmt::format("pooling {} elements to {} is not supported", extent, out));
    is_one = is_one && out == 1;
    pool.window.kernel.push_back(extent / out);
  }
  if (is_one) return c.output(0, c.add(GlobalPool{.kind = kind}, {blob.tensor}));
  pool.window.strides = pool.window.kernel;
  pool.window.dilations = Ints(axes, 1);
  pool.window.pads_begin = pool.window.pads_end = Ints(axes, 0);
  c.output(0, c.add(std::move(pool), {blob.tensor}));
}

void pooling(Conversion& c, int spatial) {
  const auto kind = c.params().integer({.id = 0, .name = "pooling_type", .high = 1}) == 0
                        ? PoolKind::max
                        : PoolKind::average;
  if (c.params().flag(7, "adaptive_pooling")) return adaptive_pooling(c, spatial, kind);
  const bool is_global = c.params().flag(4, "global_pooling");
  const auto x = spatial == 2 ? c.image(0) : c.flat(0);
  if (!is_global) return c.output(0, c.add(read_pool(c, spatial, kind), {x}));
  const auto y = c.add(GlobalPool{.kind = kind}, {x});
  if (spatial == 2) return c.output_one_by_one(y);
  c.output(0, c.add(Flatten{.axis = 1}, {y}, "flatten"));
}

// --- Interp

/// Sizes of all dimensions, the last ones being new. Empty if the others are not known.
Ints resized(const Graph& graph, TensorId x, const Ints& last) {
  const auto& shape = graph.tensor(x).shape;
  if (!shape || shape->size() < last.size()) return {};
  Ints sizes = *shape;
  std::copy(last.begin(), last.end(), sizes.end() - static_cast<std::ptrdiff_t>(last.size()));
  return sizes;
}

/// The extents that parameters or a second input ask for; none if factors do.
Ints wanted_extents(Conversion& c) {
  if (c.input_count() > 1) {
    const auto reference = c.extents(c.blob(1));
    if (reference.size() < 2) c.fail("the extents of its second input are not known");
    return reference.size() < 2 ? Ints{} : Ints{reference.end()[-2], reference.end()[-1]};
  }
  const auto height = c.params().integer({.id = 3, .name = "output_height"});
  const auto width = c.params().integer({.id = 4, .name = "output_width"});
  return height > 0 && width > 0 ? Ints{height, width} : Ints{};
}

std::vector<float> wanted_factors(Conversion& c) {
  std::vector<float> factors{c.params().number(1, "height_scale", 1),
                             c.params().number(2, "width_scale", 1)};
  for (const auto factor : factors) {
    if (!(factor > 0 && factor <= 1e6F)) c.fail(fmt::format("{} is no scale of a resize", factor));
  }
  return factors;
}

Resize read_resize(Conversion& c) {
  Resize op;
  switch (c.params().integer({.id = 0, .name = "resize_type", .high = 3})) {
    case 1:  // takes the element at floor(x / scale)
      op.mode = ResizeMode::nearest;
      op.coordinates = CoordinateMode::asymmetric;
      op.nearest = NearestMode::floor;
      return op;
    case 2:
      op.mode = ResizeMode::linear;
      break;
    case 3:
      op.mode = ResizeMode::cubic;
      break;
    default:
      c.fail("resize_type 0 is not known");
  }
  op.coordinates = c.params().flag(6, "align_corner") ? CoordinateMode::align_corners
                                                      : CoordinateMode::half_pixel;
  return op;
}

void interp(Conversion& c) {
  const auto op = read_resize(c);
  const auto blob = c.blob(0);
  const auto x = c.image(blob);
  auto extents = wanted_extents(c);
  auto factors = wanted_factors(c);
  if (blob.dims == 2) {  // rows are channels: only the width is resized
    if (!extents.empty()) extents.erase(extents.begin());
    factors.erase(factors.begin());
  }
  if (c.failed()) return;
  if (extents.empty()) {
    factors.insert(factors.begin(), 2, 1.0F);
    const auto count = static_cast<std::int64_t>(factors.size());
    const auto scales =
        c.writer().graph().add_floats(fmt::format("{}/scales", c.layer().name), {count}, factors);
    return c.output(0, c.add(op, {x, kNoTensor, scales}));
  }
  const auto sizes = resized(c.writer().graph(), x, extents);
  if (sizes.empty()) return c.unknown("the extents of its input are not known");
  c.output(0, c.add(op, {x, kNoTensor, kNoTensor, c.ints("sizes", sizes)}));
}

// --- Padding

void padding(Conversion& c) {
  auto& p = c.params();
  if (p.integer({.id = 6, .name = "per_channel_pad_data_size"}) != 0)
    return c.unknown("padding each channel with a value of its own is not supported");
  const auto pad = [&](int id, std::string_view name, std::int64_t fallback = 0) {
    return p.integer({.id = id, .name = name, .fallback = fallback, .high = kMostWindow});
  };
  const auto front = pad(7, "front");
  const Ints begin{front, pad(0, "top"), pad(2, "left")};
  const Ints end{pad(8, "behind", front), pad(1, "bottom"), pad(3, "right")};
  const auto blob = c.blob(0);
  const auto x = c.flat(blob);
  const auto dims = blob.dims == 0 ? 3 : blob.dims;
  if (dims > 3) return c.unknown("padding a blob of four dimensions is not supported");

  Ints pads{0};
  pads.insert(pads.end(), begin.end() - dims, begin.end());
  pads.push_back(0);
  pads.insert(pads.end(), end.end() - dims, end.end());
  constexpr std::array<PadMode, 3> kModes = {PadMode::constant, PadMode::edge, PadMode::reflect};
  const auto mode =
      kModes[static_cast<std::size_t>(p.integer({.id = 4, .name = "type", .high = 2}))];
  std::vector<TensorId> inputs{x, c.ints("pads", pads)};
  if (mode == PadMode::constant) inputs.push_back(c.scalar("value", p.number(5, "value", 0)));
  c.output(0, c.add(Pad{.mode = mode}, std::move(inputs)));
}

// --- Channels

void shuffle_channel(Conversion& c) {
  auto groups = c.params().integer({.id = 0, .name = "group", .fallback = 1, .low = 1});
  const auto blob = c.blob(0);
  if (c.params().flag(1, "reverse")) {
    const auto extents = c.extents(blob);
    if (extents.empty()) return c.unknown("the number of its channels is not known");
    if (extents[0] % groups != 0 || extents[0] == 0)
      return c.fail(fmt::format("{} channels cannot be parted into {} groups", extents[0], groups));
    groups = extents[0] / groups;
  }
  c.output(0, c.add(ChannelShuffle{.groups = groups}, {c.flat(blob)}));
}

void pixel_shuffle(Conversion& c) {
  const auto block = c.params().integer(
      {.id = 0, .name = "upscale_factor", .fallback = 1, .low = 1, .high = kMostWindow});
  const bool depth_first = c.params().integer({.id = 1, .name = "mode", .high = 1}) == 1;
  const auto x = c.flat(0);
  c.output(0, c.add(DepthToSpace{.block = block, .column_row_depth = !depth_first}, {x}));
}

void reorg(Conversion& c) {
  const auto block =
      c.params().integer({.id = 0, .name = "stride", .fallback = 1, .low = 1, .high = kMostWindow});
  const auto mode = c.params().integer({.id = 1, .name = "mode", .high = 1});
  auto y = c.add(SpaceToDepth{.block = block}, {c.flat(0)});
  // The graph's operator puts the position in the block before the channel; mode 0 after it.
  if (mode == 0) y = c.add(ChannelShuffle{.groups = block * block}, {y}, "shuffle");
  c.output(0, y);
}

// --- Detection

/// Names of parameters by their numbers.
using ParamNames = std::span<const std::string_view>;

constexpr std::string_view kPriorBox[] = {
    "min_sizes",    "max_sizes",  "aspect_ratios", "variance0", "variance1",
    "variance2",    "variance3",  "flip",          "clip",      "image_width",
    "image_height", "step_width", "step_height",   "offset"};
constexpr std::string_view kDetectionOutput[] = {
    "num_class", "nms_threshold", "nms_top_k", "keep_top_k", "confidence_threshold",
    "variance0", "variance1",     "variance2", "variance3"};
constexpr std::string_view kYoloOutput[] = {"num_class",     "num_box", "confidence_threshold",
                                            "nms_threshold", "biases",  "mask",
                                            "anchors_scale"};

/// Keeps the layer as it stands, with the names of its parameters.
void post_processing(Conversion& c, ParamNames names) {
  std::map<std::string, Attribute> attributes;
  for (std::size_t id = 0; id < names.size(); ++id) {
    const auto found = c.params().all().find(static_cast<int>(id));
    if (found != c.params().all().end())
      attributes[std::string(names[id])] = attribute_of(found->second);
  }
  c.unknown("detection post-processing is not run by fleetfit", std::move(attributes));
}

constexpr std::array<LayerType, 11> kLayers = {{
    {"Pooling", [](Conversion& c) { pooling(c, 2); }},
    {"Pooling1D", [](Conversion& c) { pooling(c, 1); }},
    {"Interp", interp},
    {"Padding", padding},
    {"ShuffleChannel", shuffle_channel},
    {"PixelShuffle", pixel_shuffle},
    {"Reorg", reorg},
    {"PriorBox", [](Conversion& c) { post_processing(c, kPriorBox); }},
    {"DetectionOutput", [](Conversion& c) { post_processing(c, kDetectionOutput); }},
    {"YoloDetectionOutput",
     [](Conversion& c) { post_processing(c, ParamNames(kYoloOutput).first(5)); }},
    {"Yolov3DetectionOutput", [](Conversion& c) { post_processing(c, kYoloOutput); }},
}};

}  // namespace

std::span<const LayerType> image_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
