#include <array>
#include <cstring>

#include "fleetfit/graph/shape_inference.h"
#include "graph/operators/family.h"
#include "graph/operators/windows.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace tflite;

Status check_bias(const Operands& in, std::size_t position, std::int64_t channels) {
  const auto* bias = in.shape(position);
  if (bias != nullptr && elements(*bias) != channels) {
    return misfit("{} values of bias for {} channels", elements(*bias), channels);
  }
  return {};
}

struct ConvChannels {
  std::int64_t in = 0;
  std::int64_t out = 0;
};

Status check_conv(const Window& window, std::int64_t groups, Layout layout, const Shape& x,
                  const Shape& weights) {
  FLEETFIT_TRY(check_image(x));
  if (weights.size() != x.size()) {
    return misfit("weights {} do not fit an input of {}", to_string(weights), to_string(x));
  }
  FLEETFIT_TRY(check_window(window, x.size() - 2));
  if (spatial_extents(weights, layout) != window.kernel) {
    return misfit("weights {} do not have the kernel {}", to_string(weights),
                  to_string(window.kernel));
  }
  if (groups < 1 || groups > kMostWindow) return misfit("{} groups", groups);
  return {};
}

Status check_channels(std::int64_t channels, const ConvChannels& weights, std::int64_t groups) {
  if (weights.in != channels) {
    return misfit("input has {} channels, weights want {}", channels, weights.in);
  }
  if (channels % groups != 0 || weights.out % groups != 0) {
    return misfit("{} and {} channels do not divide into {} groups", channels, weights.out, groups);
  }
  return {};
}

Outcomes infer(const Conv& op, const Operands& in) {
  const auto* x = in.shape(0);
  const auto* weights = in.shape(1);
  if (x == nullptr || weights == nullptr) return open(in.dtype(0));
  FLEETFIT_TRY(check_conv(op.window, op.groups, op.layout, *x, *weights));
  const auto out = weights->front();
  const auto per_group = op.layout == Layout::nchw ? (*weights)[1] : weights->back();
  const auto channels = (*x)[channel_axis(*x, op.layout)];
  if (per_group > kMostWindow) return misfit("weights {} are absurdly large", to_string(*weights));
  FLEETFIT_TRY(check_channels(channels, {per_group * op.groups, out}, op.groups));
  FLEETFIT_TRY(check_bias(in, 2, out));
  FLEETFIT_ASSIGN(const auto extents, windows_that_fit(op.window, spatial_extents(*x, op.layout)));
  return one(in.dtype(0), image_shape(x->front(), out, extents, op.layout));
}

Outcomes infer(const ConvTranspose& op, const Operands& in) {
  const auto* x = in.shape(0);
  const auto* weights = in.shape(1);
  if (x == nullptr || weights == nullptr) return open(in.dtype(0));
  FLEETFIT_TRY(check_conv(op.window, op.groups, op.layout, *x, *weights));
  const bool nchw = op.layout == Layout::nchw;
  const auto per_group = nchw ? (*weights)[1] : weights->back();
  if (per_group > kMostWindow) return misfit("weights {} are absurdly large", to_string(*weights));
  const ConvChannels wanted = nchw ? ConvChannels{weights->front(), per_group * op.groups}
                                   : ConvChannels{per_group * op.groups, weights->front()};
  FLEETFIT_TRY(check_channels((*x)[channel_axis(*x, op.layout)], wanted, op.groups));
  FLEETFIT_TRY(check_bias(in, 2, wanted.out));

  auto extents = spatial_extents(*x, op.layout);
  const auto spatial = extents.size();
  if (op.output_padding.size() != spatial || !all_from(op.output_padding, 0))
    return misfit("output padding does not fit");
  if (!op.output_shape.empty() &&
      (op.output_shape.size() != spatial || !all_from(op.output_shape, 1))) {
    return misfit("output shape {} does not fit", to_string(op.output_shape));
  }
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto stride = op.window.strides[i];
    const bool same =
        op.window.auto_pad == AutoPad::same_upper || op.window.auto_pad == AutoPad::same_lower;
    const bool pads = op.window.auto_pad == AutoPad::explicit_pads;
    if (!op.output_shape.empty()) {
      extents[i] = op.output_shape[i];
    } else if (same) {
      extents[i] *= stride;
    } else {
      extents[i] = (extents[i] - 1) * stride + op.output_padding[i] + reach(op.window, i) -
                   (pads ? op.window.pads_begin[i] + op.window.pads_end[i] : 0);
    }
    if (extents[i] < 1) return misfit("pads leave nothing of the result");
  }
  return one(in.dtype(0), image_shape(x->front(), wanted.out, extents, op.layout));
}

void link(const Conv& op, ChannelLinks& links) {
  const TensorId x = links.in(0);
  const TensorId w = links.in(1);
  const std::size_t channel = links.channel_axis_of(x, op.layout);
  const std::size_t weight_in = op.layout == Layout::nchw ? 1 : links.rank(w) - 1;
  links.same(x, 0, links.out(), 0);
  for (const TensorId t : {x, links.out()}) links.pin_but(t, {0, channel});
  links.pin_but(w, {0, weight_in});
  links.same(links.out(), channel, w, 0);
  if (links.has(2)) links.same(links.out(), channel, links.in(2), 0);
  if (op.groups == 1) return links.same(x, channel, w, weight_in);
  const int groups = static_cast<int>(op.groups);
  if (links.thins_groups()) {
    links.repeat(x, channel, w, weight_in);
    return links.repeat(links.out(), channel, groups);
  }
  links.pin(w, weight_in);
  links.unite_groups(x, links.out(), channel, groups);
}

void link(const ConvTranspose& op, ChannelLinks& links) {
  if (op.groups != 1 || op.layout != Layout::nchw) return links.pin_node();
  links.same(links.in(0), 0, links.out(), 0);
  for (const TensorId t : {links.in(0), links.out()}) links.pin_but(t, {0, 1});
  links.pin_but(links.in(1), {0, 1});
  links.same(links.in(0), 1, links.in(1), 0);
  links.same(links.out(), 1, links.in(1), 1);
  if (links.has(2)) links.same(links.out(), 1, links.in(2), 0);
}

/// Each output element sums over one filter.
Count products(const Conv&, const Graph& graph, const Node& node) {
  const auto& weights = input_shape(graph, node, 1);
  const auto filter = weights.front() > 0 ? elements(weights) / weights.front() : 1;
  return product({elements(output_shape(graph, node)), filter});
}

/// Each input element is spread by one filter.
Count products(const ConvTranspose& op, const Graph& graph, const Node& node) {
  const auto& x = input_shape(graph, node, 0);
  const auto channels = x[channel_axis(x, op.layout)];
  const auto filter = channels > 0 ? elements(input_shape(graph, node, 1)) / channels : 1;
  return product({elements(x), filter});
}

/// The kernel of a convolution, from the attribute or else from the weights.
Ints conv_kernel(const NodeReader& reader, const Graph& graph) {
  auto kernel = reader.ints("kernel_shape");
  if (!kernel.empty() || !reader.has_input(1)) return kernel;
  const auto& weights = graph.tensor(reader.input(1)).shape;
  if (weights && weights->size() > 2) kernel.assign(weights->begin() + 2, weights->end());
  return kernel;
}

Result<Operator> read_onnx(Conv op, NodeReader& reader) {
  auto kernel = conv_kernel(reader, reader.graph());
  if (kernel.empty()) return unknown(reader, "the size of its kernel is not in the file");
  FLEETFIT_ASSIGN(op.window, read_window(reader, std::move(kernel)));
  return op;
}

Result<Operator> read_onnx(ConvTranspose op, NodeReader& reader) {
  auto kernel = conv_kernel(reader, reader.graph());
  if (kernel.empty()) return unknown(reader, "the size of its kernel is not in the file");
  const auto spatial = kernel.size();
  FLEETFIT_ASSIGN(op.window, read_window(reader, std::move(kernel)));
  FLEETFIT_ASSIGN(op.output_padding, per_dimension(reader, "output_padding", spatial, 0));
  // Some files give batch and channels too.
  if (op.output_shape.size() == spatial + 2)
    op.output_shape.erase(op.output_shape.begin(), op.output_shape.begin() + 2);
  return op;
}

void write_geometry(const Window& window, NodeWriter& out) {
  write_window(window, out);
  out.set("dilations", window.dilations);
}

void write_onnx(const Conv& op, NodeWriter& out) { write_geometry(op.window, out); }

void write_onnx(const ConvTranspose& op, NodeWriter& out) { write_geometry(op.window, out); }

constexpr std::size_t kImageRank = 4;

/// Height and width of the weights at input `i`, which has four dimensions; nothing if the file
/// does not tell.
std::optional<Ints> kernel_of(const Conversion& c, std::size_t i) {
  const auto* shape = c.shape(i);
  if (shape == nullptr || shape->size() != kImageRank) return std::nullopt;
  return Ints{(*shape)[1], (*shape)[2]};
}

constexpr std::string_view kNoKernel = "its weights have no known shape of four dimensions";

std::optional<std::int64_t> channels_of(const Conversion& c, std::size_t i) {
  const auto* shape = c.shape(i);
  if (shape == nullptr || shape->size() != kImageRank) return std::nullopt;
  return shape->back();
}

/// Geometry of a convolution, plain or depthwise: their options have the same fields.
Result<Window> conv_window(const Options& options, Ints kernel) {
  return window(std::move(kernel),
                {.stride_h = options.integer("stride_h"),
                 .stride_w = options.integer("stride_w"),
                 .dilation_h = options.integer("dilation_h_factor", 1),
                 .dilation_w = options.integer("dilation_w_factor", 1)},
                options.name("padding"));
}

/// Height and width of an output as the file declares them; empty if it leaves them open.
Ints declared_spatial_extents(const Conversion& c) {
  const auto& shape = c.graph.tensor(c.outputs[0]).shape;
  if (!shape || shape->size() != kImageRank) return {};
  return {(*shape)[1], (*shape)[2]};
}

Result<Converted> convert_conv_2d(Conversion& c) {
  const auto options = c.options("Conv2DOptions");
  if (!options) return refuse(std::string(kNoOptions));
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  auto kernel = kernel_of(c, 1);
  if (!kernel) return not_known(std::string(kNoKernel));
  FLEETFIT_ASSIGN(auto w, conv_window(options, std::move(*kernel)));

  const auto channels = channels_of(c, 0);
  const auto channels_in_group = c.shape(1)->back();
  std::int64_t groups = 1;
  if (channels && channels_in_group > 0 && *channels > channels_in_group) {
    if (*channels % channels_in_group != 0) {
      return refuse(
          fmt::format("{} channels do not split into groups of {}", *channels, channels_in_group));
    }
    groups = *channels / channels_in_group;
  }
  return Converted{.op = Conv{.window = std::move(w), .groups = groups, .layout = Layout::nhwc},
                   .inputs = with_optional({c.input(0), c.input(1)}, c.input(2)),
                   .activation = *activation};
}

Result<Converted> convert_depthwise_conv_2d(Conversion& c) {
  const auto options = c.options("DepthwiseConv2DOptions");
  if (!options) return refuse(std::string(kNoOptions));
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  auto kernel = kernel_of(c, 1);
  if (!kernel) return not_known(std::string(kNoKernel));
  FLEETFIT_ASSIGN(auto w, conv_window(options, std::move(*kernel)));

  // Runtimes ignore the multiplier in the options, so it only helps where shapes do not tell.
  const auto output_channels = c.shape(1)->back();
  auto channels = channels_of(c, 0);
  if (!channels && options.integer("depth_multiplier") > 0)
    channels = output_channels / options.integer("depth_multiplier");
  if (!channels) return not_known("its number of channels is not known");
  if (*channels < 1 || output_channels % *channels != 0) {
    return refuse(fmt::format("{} output channels are no multiple of {} input channels",
                              output_channels, *channels));
  }
  FLEETFIT_ASSIGN(const auto weights, depthwise_weights(c, c.input(1)));
  return Converted{.op = Conv{.window = std::move(w), .groups = *channels, .layout = Layout::nhwc},
                   .inputs = with_optional({c.input(0), weights}, c.input(2)),
                   .activation = *activation};
}

Result<Converted> convert_transpose_conv(Conversion& c) {
  const auto options = c.options("TransposeConvOptions");
  if (!options) return refuse(std::string(kNoOptions));
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  auto kernel = kernel_of(c, 1);
  if (!kernel) return not_known(std::string(kNoKernel));
  FLEETFIT_ASSIGN(auto w, window(std::move(*kernel),
                                 {.stride_h = options.integer("stride_h"),
                                  .stride_w = options.integer("stride_w")},
                                 options.name("padding")));

  auto output_shape = declared_spatial_extents(c);
  if (const auto given = c.ints(0)) {
    if (given->size() != kImageRank || (*given)[1] < 1 || (*given)[2] < 1)
      return refuse("its output shape is no shape of four dimensions");
    output_shape = {(*given)[1], (*given)[2]};
  }
  return Converted{.op = ConvTranspose{.window = std::move(w),
                                       .output_padding = {0, 0},
                                       .output_shape = std::move(output_shape),
                                       .layout = Layout::nhwc},
                   .inputs = with_optional({c.input(2), c.input(1)}, c.input(3)),
                   .activation = *activation};
}

Result<Converted> convert_mediapipe_transpose_conv(Conversion& c) {
  // The options are the runtime's own struct: padding (1 same, 2 valid), stride of width, of
  // height.
  std::int32_t options[3] = {};
  const auto bytes = c.custom_options();
  if (bytes.size() < sizeof(options)) return not_known("it has no options");
  std::memcpy(options, bytes.data(), sizeof(options));
  if (options[0] != 1 && options[0] != 2) return not_known("its padding is not known");

  auto kernel = kernel_of(c, 1);
  if (!kernel) return not_known(std::string(kNoKernel));
  FLEETFIT_ASSIGN(auto w,
                  window(std::move(*kernel), {.stride_h = options[2], .stride_w = options[1]},
                         options[0] == 1 ? "SAME" : "VALID"));
  return Converted{
      .op = ConvTranspose{.window = std::move(w), .output_padding = {0, 0}, .layout = Layout::nhwc},
      .inputs = with_optional({c.input(0), c.input(1)}, c.input(2))};
}

constexpr OperatorTraits convolution(OperatorTraits t) {
  t.arity = {2, 3};
  t.is_layer = true;
  t.quantized_of = quantization::role_of_layer;
  t.trained = {1, 2};
  return t;
}

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Conv>(convolution({.number = 1,
                                .name = "Conv",
                                .kernel_kind = "conv2d",
                                .onnx = {attribute<&Conv::groups>("group")}})),
    describe<ConvTranspose>(
        convolution({.number = 2,
                     .name = "ConvTranspose",
                     .kernel_kind = "transposed_conv2d",
                     .onnx = {attribute<&ConvTranspose::groups>("group"),
                              attribute<&ConvTranspose::output_padding>("output_padding"),
                              attribute<&ConvTranspose::output_shape>("output_shape")}})),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"CONV_2D", convert_conv_2d, {2, 3}},
    {"DEPTHWISE_CONV_2D", convert_depthwise_conv_2d, {2, 3}},
    {"TRANSPOSE_CONV", convert_transpose_conv, {3, 4}},
    {"Convolution2DTransposeBias", convert_mediapipe_transpose_conv, {2, 3}},
});

}  // namespace

OperatorFamily convolution_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
