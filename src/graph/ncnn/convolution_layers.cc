#include <fmt/format.h>

#include <array>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

constexpr std::int64_t kSameUpper = -233;
constexpr std::int64_t kSameLower = -234;
constexpr std::int64_t kMostWindow = 1 << 20;

/// The parameters that convolutions of all kinds share.
struct ConvolutionSpec {
  int spatial = 2;
  std::int64_t outputs = 0;
  std::int64_t groups = 1;
  std::int64_t inputs_per_group = 0;
  std::int64_t kernel_size = 1;
  Window window;
  bool has_bias = false;
  bool is_int8 = false;
};

void read_padding(Conversion& c, ConvolutionSpec& spec) {
  const auto left =
      c.params().integer({.id = 4, .name = "pad_left", .low = kSameLower, .high = kMostWindow});
  auto& window = spec.window;
  const auto axes = static_cast<std::size_t>(spec.spatial);
  if (left == kSameUpper || left == kSameLower) {
    window.auto_pad = left == kSameUpper ? AutoPad::same_upper : AutoPad::same_lower;
    window.pads_begin = window.pads_end = Ints(axes, 0);
    return;
  }
  const auto pad = [&](int id, std::string_view name, std::int64_t fallback) {
    return c.params().integer({.id = id, .name = name, .fallback = fallback, .high = kMostWindow});
  };
  if (left < 0) return c.fail(fmt::format("parameter 4 (pad_left) is {}", left));
  const auto right = pad(15, "pad_right", left);
  window.pads_begin = {left};
  window.pads_end = {right};
  if (spec.spatial == 1) return;
  const auto top = pad(14, "pad_top", left);
  const auto bottom = pad(16, "pad_bottom", top);
  window.pads_begin = {top, left};
  window.pads_end = {bottom, right};
}

void read_window(Conversion& c, ConvolutionSpec& spec) {
  auto& window = spec.window;
  const auto n = spec.spatial;
  window.kernel = c.params().by_axis(
      n, {.id = 1, .name = "kernel", .fallback = 1, .low = 1, .high = kMostWindow});
  window.dilations = c.params().by_axis(
      n, {.id = 2, .name = "dilation", .fallback = 1, .low = 1, .high = kMostWindow});
  window.strides = c.params().by_axis(
      n, {.id = 3, .name = "stride", .fallback = 1, .low = 1, .high = kMostWindow});
  read_padding(c, spec);
  for (const auto extent : window.kernel) spec.kernel_size *= extent;
}

ConvolutionSpec read_spec(Conversion& c, int spatial) {
  ConvolutionSpec spec{.spatial = spatial};
  for (const int id : {0, 1, 6}) {
    if (!c.params().has(id)) c.fail(fmt::format("parameter {} is missing", id));
  }
  spec.outputs = c.params().integer({.id = 0, .name = "num_output", .fallback = 1, .low = 1});
  spec.groups = c.params().integer({.id = 7, .name = "group", .fallback = 1, .low = 1});
  spec.has_bias = c.params().flag(5, "bias_term");
  spec.is_int8 = c.params().flag(8, "int8_scale_term");
  read_window(c, spec);

  const auto weights =
      c.params().integer({.id = 6, .name = "weight_data_size", .fallback = 1, .low = 1});
  // Neither factor exceeds 2^31 and 2^40, so the check is on the quotients.
  const auto per_output = weights / spec.outputs;
  spec.inputs_per_group = per_output / spec.kernel_size;
  if (per_output * spec.outputs != weights || spec.inputs_per_group < 1 ||
      spec.inputs_per_group * spec.kernel_size != per_output) {
    c.fail(
        fmt::format("{} weights (parameter 6) are no whole number of kernels of {} for {} "
                    "outputs",
                    weights, to_string(spec.window.kernel), spec.outputs));
  }
  if (spec.outputs % spec.groups != 0)
    c.fail(fmt::format("{} outputs cannot be parted into {} groups", spec.outputs, spec.groups));
  return spec;
}

Shape with_kernel(std::int64_t first, std::int64_t second, const Ints& kernel) {
  Shape shape{first, second};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return shape;
}

TensorId bias(Conversion& c, const ConvolutionSpec& spec) {
  return spec.has_bias ? c.filled("bias", {spec.outputs}, 0) : kNoTensor;
}

std::vector<TensorId> with_bias(TensorId x, TensorId weights, TensorId bias) {
  std::vector<TensorId> inputs{x, weights};
  if (bias != kNoTensor) inputs.push_back(bias);
  return inputs;
}

/// Padding with something else than zero is a node of its own.
TensorId padded_with_value(Conversion& c, TensorId x, ConvolutionSpec& spec) {
  const auto value = c.params().number(18, "pad_value", 0);
  auto& window = spec.window;
  if (value == 0 || window.auto_pad != AutoPad::explicit_pads) return x;
  Ints pads{0, 0};
  pads.insert(pads.end(), window.pads_begin.begin(), window.pads_begin.end());
  pads.insert(pads.end(), {0, 0});
  pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
  window.pads_begin = window.pads_end = Ints(window.kernel.size(), 0);
  return c.add(Pad{}, {x, c.ints("pads", pads), c.scalar("pad_value", value)}, "pad");
}

void convolution(Conversion& c, int spatial) {
  if (c.params().flag(19, "dynamic_weight"))
    return c.unknown("convolutions whose weights are computed are not supported");
  auto spec = read_spec(c, spatial);
  const auto blob = c.blob(0);
  const auto x = padded_with_value(c, spatial == 2 ? c.image(blob) : c.flat(blob), spec);
  const auto fan_in = spec.inputs_per_group * spec.kernel_size;
  const auto weights =
      c.weights({.role = "weight",
                 .shape = with_kernel(spec.outputs, spec.inputs_per_group, spec.window.kernel),
                 .fan_in = fan_in,
                 .is_int8 = spec.is_int8});
  auto y = c.add(Conv{.window = spec.window, .groups = spec.groups},
                 with_bias(x, weights, bias(c, spec)));
  y = fused_activation(c, y);
  // ncnn computes a 1 x 1 convolution of a blob of one dimension as a dense layer.
  return blob.dims == 1 && spatial == 2 ? c.output_one_by_one(y) : c.output(0, y);
}

void deconvolution(Conversion& c, int spatial) {
  const auto spec = read_spec(c, spatial);
  const auto x = spatial == 2 ? c.image(0) : c.flat(0);
  ConvTranspose op{.window = spec.window, .groups = spec.groups};
  op.output_padding =
      c.params().by_axis(1, {.id = 18, .name = "output_pad_right", .high = kMostWindow});
  if (spatial == 2) {
    op.output_padding.insert(op.output_padding.begin(),
                             c.params().integer({.id = 19,
                                                 .name = "output_pad_bottom",
                                                 .fallback = op.output_padding[0],
                                                 .high = kMostWindow}));
  }
  if (const auto width = c.params().integer({.id = 20, .name = "output_w"}); width > 0) {
    op.output_shape = {width};
    if (spatial == 2)
      op.output_shape = {
          c.params().integer({.id = 21, .name = "output_h", .fallback = width, .low = 1}), width};
  }
  // Each output sees about kernel / stride positions of every input.
  std::int64_t fan_in = spec.inputs_per_group * spec.kernel_size;
  for (const auto stride : spec.window.strides) fan_in = std::max<std::int64_t>(1, fan_in / stride);
  const auto weights =
      c.weights({.role = "weight",
                 .shape = with_kernel(spec.inputs_per_group * spec.groups,
                                      spec.outputs / spec.groups, spec.window.kernel),
                 .fan_in = fan_in});
  const auto y = c.add(std::move(op), with_bias(x, weights, bias(c, spec)));
  c.output(0, fused_activation(c, y));
}

constexpr std::array<LayerType, 8> kLayers = {{
    {"Convolution", [](Conversion& c) { convolution(c, 2); }},
    {"ConvolutionDepthWise", [](Conversion& c) { convolution(c, 2); }},
    {"Convolution1D", [](Conversion& c) { convolution(c, 1); }},
    {"ConvolutionDepthWise1D", [](Conversion& c) { convolution(c, 1); }},
    {"Deconvolution", [](Conversion& c) { deconvolution(c, 2); }},
    {"DeconvolutionDepthWise", [](Conversion& c) { deconvolution(c, 2); }},
    {"Deconvolution1D", [](Conversion& c) { deconvolution(c, 1); }},
    {"DeconvolutionDepthWise1D", [](Conversion& c) { deconvolution(c, 1); }},
}};

}  // namespace

std::span<const LayerType> convolution_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
