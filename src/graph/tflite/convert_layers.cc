// Operators with weights, pooling and normalization.

#include <cstring>

#include "graph/tflite/conversion.h"

namespace fleetfit::graph::tflite {
namespace {

constexpr std::size_t kImageRank = 4;

/// Strides and dilations of a window; all of them must be positive.
struct Steps {
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  std::int64_t dilation_h = 1;
  std::int64_t dilation_w = 1;
};

Result<Window> window(Ints kernel, const Steps& steps, file::Padding padding) {
  Window w{.kernel = std::move(kernel),
           .strides = {steps.stride_h, steps.stride_w},
           .dilations = {steps.dilation_h, steps.dilation_w},
           .pads_begin = {0, 0},
           .pads_end = {0, 0}};
  for (const auto* values : {&w.kernel, &w.strides, &w.dilations}) {
    if ((*values)[0] < 1 || (*values)[1] < 1)
      return refuse("kernel, strides and dilations must be positive");
  }
  if (padding != file::Padding::SAME && padding != file::Padding::VALID)
    return refuse("its padding is neither SAME nor VALID");
  w.auto_pad = padding == file::Padding::SAME ? AutoPad::same_upper : AutoPad::valid;
  return w;
}

/// Height and width of the weights at input `i`, which has four dimensions; nothing if the file
/// does not tell.
std::optional<Ints> kernel_of(const Conversion& c, std::size_t i) {
  const auto* shape = c.shape(i);
  if (shape == nullptr || shape->size() != kImageRank) return std::nullopt;
  return Ints{(*shape)[1], (*shape)[2]};
}

constexpr std::string_view kNoKernel = "its weights have no known shape of four dimensions";
constexpr std::string_view kNoOptions = "it has no options";

std::vector<TensorId> with_optional(std::vector<TensorId> inputs, TensorId optional) {
  if (optional != kNoTensor) inputs.push_back(optional);
  return inputs;
}

std::optional<std::int64_t> channels_of(const Conversion& c, std::size_t i) {
  const auto* shape = c.shape(i);
  if (shape == nullptr || shape->size() != kImageRank) return std::nullopt;
  return shape->back();
}

/// Geometry of a convolution, plain or depthwise: their options have the same fields.
template <class Options>
Result<Window> conv_window(const Options& options, Ints kernel) {
  return window(std::move(kernel),
                {.stride_h = options.stride_h(),
                 .stride_w = options.stride_w(),
                 .dilation_h = options.dilation_h_factor(),
                 .dilation_w = options.dilation_w_factor()},
                options.padding());
}

Result<Converted> convert_pool(Conversion& c, PoolKind kind) {
  const auto* options = c.options<file::Pool2DOptions>();
  if (options == nullptr) return refuse(std::string(kNoOptions));
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  FLEETFIT_ASSIGN(auto w, window({options->filter_height(), options->filter_width()},
                                 {.stride_h = options->stride_h(), .stride_w = options->stride_w()},
                                 options->padding()));
  return Converted{.op = Pool{.kind = kind, .window = std::move(w), .layout = Layout::nhwc},
                   .inputs = {c.input(0)},
                   .activation = *activation};
}

/// Height and width of an output as the file declares them; empty if it leaves them open.
Ints declared_spatial_extents(const Conversion& c) {
  const auto& shape = c.graph.tensor(c.outputs[0]).shape;
  if (!shape || shape->size() != kImageRank) return {};
  return {(*shape)[1], (*shape)[2]};
}

}  // namespace

Result<Converted> convert_conv_2d(Conversion& c) {
  const auto* options = c.options<file::Conv2DOptions>();
  if (options == nullptr) return refuse(std::string(kNoOptions));
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  auto kernel = kernel_of(c, 1);
  if (!kernel) return not_known(std::string(kNoKernel));
  FLEETFIT_ASSIGN(auto w, conv_window(*options, std::move(*kernel)));

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
  const auto* options = c.options<file::DepthwiseConv2DOptions>();
  if (options == nullptr) return refuse(std::string(kNoOptions));
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  auto kernel = kernel_of(c, 1);
  if (!kernel) return not_known(std::string(kNoKernel));
  FLEETFIT_ASSIGN(auto w, conv_window(*options, std::move(*kernel)));

  // Runtimes ignore the multiplier in the options, so it only helps where shapes do not tell.
  const auto output_channels = c.shape(1)->back();
  auto channels = channels_of(c, 0);
  if (!channels && options->depth_multiplier() > 0)
    channels = output_channels / options->depth_multiplier();
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
  const auto* options = c.options<file::TransposeConvOptions>();
  if (options == nullptr) return refuse(std::string(kNoOptions));
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  auto kernel = kernel_of(c, 1);
  if (!kernel) return not_known(std::string(kNoKernel));
  FLEETFIT_ASSIGN(auto w, window(std::move(*kernel),
                                 {.stride_h = options->stride_h(), .stride_w = options->stride_w()},
                                 options->padding()));

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
  const auto* bytes = c.source.custom_options();
  if (bytes == nullptr || bytes->size() < sizeof(options)) return not_known("it has no options");
  std::memcpy(options, bytes->data(), sizeof(options));
  if (options[0] != 1 && options[0] != 2) return not_known("its padding is not known");

  auto kernel = kernel_of(c, 1);
  if (!kernel) return not_known(std::string(kNoKernel));
  FLEETFIT_ASSIGN(auto w,
                  window(std::move(*kernel), {.stride_h = options[2], .stride_w = options[1]},
                         options[0] == 1 ? file::Padding::SAME : file::Padding::VALID));
  return Converted{
      .op = ConvTranspose{.window = std::move(w), .output_padding = {0, 0}, .layout = Layout::nhwc},
      .inputs = with_optional({c.input(0), c.input(1)}, c.input(2))};
}

Result<Converted> convert_fully_connected(Conversion& c) {
  const auto* options = c.options<file::FullyConnectedOptions>();
  const auto activation = fused(options);
  if (!activation) return not_known(std::string(kUnknownActivation));
  if (options != nullptr &&
      options->weights_format() != file::FullyConnectedOptionsWeightsFormat::DEFAULT)
    return not_known("its weights are shuffled");
  const bool keep_leading = options != nullptr && options->keep_num_dims();
  return Converted{.op = Gemm{.trans_b = true, .keep_leading = keep_leading},
                   .inputs = with_optional({c.input(0), c.input(1)}, c.input(2)),
                   .activation = *activation};
}

Result<Converted> convert_batch_matmul(Conversion& c) {
  const auto* options = c.options<file::BatchMatMulOptions>();
  return Converted{.op = MatMul{.trans_a = options != nullptr && options->adj_x(),
                                .trans_b = options != nullptr && options->adj_y()},
                   .inputs = c.inputs};
}

Result<Converted> convert_average_pool_2d(Conversion& c) {
  return convert_pool(c, PoolKind::average);
}

Result<Converted> convert_max_pool_2d(Conversion& c) { return convert_pool(c, PoolKind::max); }

Result<Converted> convert_softmax(Conversion& c) {
  const auto* options = c.options<file::SoftmaxOptions>();
  const float beta = options == nullptr ? 0 : options->beta();
  if (beta != 1) return not_known(fmt::format("its beta is {}, not 1", beta));
  return Converted{.op = Softmax{.axis = -1}, .inputs = {c.input(0)}};
}

Result<Converted> convert_log_softmax(Conversion& c) {
  return Converted{.op = Softmax{.axis = -1, .log = true}, .inputs = {c.input(0)}};
}

Result<Converted> convert_l2_normalization(Conversion& c) {
  const auto activation = fused(c.options<file::L2NormOptions>());
  if (!activation) return not_known(std::string(kUnknownActivation));
  return Converted{
      .op = LpNormalization{.axis = -1, .p = 2}, .inputs = {c.input(0)}, .activation = *activation};
}

Result<Converted> convert_local_response_normalization(Conversion& c) {
  const auto* options = c.options<file::LocalResponseNormalizationOptions>();
  if (options == nullptr) return refuse(std::string(kNoOptions));
  if (options->radius() < 0) return refuse("its radius is negative");
  // The graph's operator divides alpha by the size, the file's does not.
  const auto size = 2 * std::int64_t{options->radius()} + 1;
  return Converted{.op = Lrn{.size = size,
                             .alpha = options->alpha() * static_cast<float>(size),
                             .beta = options->beta(),
                             .bias = options->bias(),
                             .layout = Layout::nhwc},
                   .inputs = {c.input(0)}};
}

}  // namespace fleetfit::graph::tflite
