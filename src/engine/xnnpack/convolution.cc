// Convolutions, transposed ones, and products with constant matrices, which are convolutions of
// pixels.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/xnnpack/xnnpack.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::engine::xnnpack {
namespace {

using graph::DType;
using graph::Ints;

constexpr std::size_t kImage = 0;
constexpr std::size_t kWeights = 1;
constexpr std::size_t kBias = 2;

/// What all of them come down to. Weights lie as outputs x height x width x inputs per group.
struct Layer {
  Window2d window;
  Image in;
  std::size_t out_channels = 1;
  std::uint32_t groups = 1;
  std::vector<std::byte> weights;
  std::optional<Window2d::Side> transposed = {};  ///< rows and columns added to the result

  std::size_t in_per_group() const { return in.channels / groups; }
  std::size_t out_per_group() const { return out_channels / groups; }
};

/// `rest` is what follows the geometry in the arguments.
template <class Create, class... Rest>
OperatorPtr create_with(Create function, const Layer& layer, Rest... rest) {
  const Window2d& w = layer.window;
  return create(function, w.pads_begin.height, w.pads_end.width, w.pads_end.height,
                w.pads_begin.width, w.kernel.height, w.kernel.width, w.strides.height,
                w.strides.width, w.dilations.height, w.dilations.width, layer.groups,
                layer.in_per_group(), layer.out_per_group(), layer.in.channels, layer.out_channels,
                rest...);
}

template <class T, auto create_function, auto setup, class... Rest>
void add_plain(KernelParts& parts, const Task& task, const Layer& layer, Rest... rest) {
  const Image& in = layer.in;
  parts.add(create_with(create_function, layer, rest...),
            between<T>(setup, place_of_input(task, kImage), place_of_output(), in.batch, in.height,
                       in.width));
}

template <class T, auto create_function, auto setup, class... Rest>
void add_transposed(KernelParts& parts, const Task& task, const Layer& layer, Rest... rest) {
  const Image& in = layer.in;
  parts.add(create_with(create_function, layer, rest...),
            between<T>(setup, place_of_input(task, kImage), place_of_output(), in.batch, in.height,
                       in.width, layer.transposed->height, layer.transposed->width));
}

template <class T>
const T* elements_of(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

bool has_bias(const Task& task) { return has_input(task, kBias); }

KernelPtr make_float(const Task& task, const Layer& layer) {
  const bool biased = has_bias(task);
  if (biased && !is_real(task.inputs[kBias])) return nullptr;
  const float* bias = biased ? task.inputs[kBias].constant->as<float>().data() : nullptr;
  const float* weights = elements_of<float>(layer.weights);
  const auto bounds = bounds_of(task.node.activation);
  const auto [low, high] = bounds.value_or(Bounds{});
  KernelParts parts(task, layer.transposed ? "deconvolution f32" : "convolution f32");
  if (layer.transposed) {
    add_transposed<float, FLEETFIT_XNN(deconvolution2d_nhwc_f32)>(parts, task, layer, weights, bias,
                                                                  low, high, 0U);
  } else {
    add_plain<float, FLEETFIT_XNN(convolution2d_nhwc_f32)>(parts, task, layer, weights, bias, low,
                                                           high, 0U);
  }
  parts.count_weights(layer.weights.size() + (biased ? layer.out_channels * sizeof(float) : 0));
  return std::move(parts).kernel(is_included(bounds));
}

/// The bias counted in units of input scale times weight scale, as sums of products are. Nothing if
/// it does not fit.
std::optional<std::vector<std::int32_t>> counted_bias(const Task& task, const Layer& layer,
                                                      float input_scale) {
  std::vector<std::int32_t> counted(layer.out_channels, 0);
  if (!has_bias(task)) return counted;
  const Operand& bias = task.inputs[kBias];
  const auto at = [](const std::vector<float>& scales, std::size_t c) {
    return static_cast<double>(scales[scales.size() == 1 ? 0 : c]);
  };
  const bool real = is_real(bias);
  if (!real && (bias.dtype != DType::i32 || !bias.quantization)) return std::nullopt;
  for (std::size_t c = 0; c < counted.size(); ++c) {
    const double unit = input_scale * at(task.inputs[kWeights].quantization->scales, c);
    const double value =
        real ? bias.constant->as<float>()[c]
             : bias.constant->as<std::int32_t>()[c] * at(bias.quantization->scales, c);
    const double count = std::nearbyint(value / unit);
    if (!(std::abs(count) < std::numeric_limits<std::int32_t>::max())) return std::nullopt;
    counted[c] = static_cast<std::int32_t>(count);
  }
  return counted;
}

bool is_quantized(const Task& task) {
  const auto is_zero = [](std::int32_t value) { return value == 0; };
  const auto in = affine(task.inputs[kImage]);
  const auto out = affine(task.outputs[0]);
  const auto& weights = task.inputs[kWeights];
  return in && out && task.inputs[kImage].dtype == task.outputs[0].dtype && weights.quantization &&
         (weights.dtype == DType::i8 || weights.dtype == DType::u8) &&
         (!has_bias(task) || !task.inputs[kBias].quantization ||
          std::ranges::all_of(task.inputs[kBias].quantization->zero_points, is_zero));
}

/// Weights in bytes of another sign: all numbers, and the zero point, move by half the range.
struct SignedAs {
  std::vector<std::byte> weights;
  std::vector<std::int32_t> zero_points;
};

SignedAs signed_as(DType wanted, const Operand& operand, const std::vector<std::byte>& weights) {
  SignedAs result{weights, operand.quantization->zero_points};
  if (operand.dtype == wanted) return result;
  constexpr std::byte kHalf{0x80};
  constexpr std::int32_t kShift = 128;
  for (auto& value : result.weights) value ^= kHalf;
  for (auto& zero : result.zero_points) zero += wanted == DType::u8 ? kShift : -kShift;
  return result;
}

template <class T>
KernelPtr make_stored(const Task& task, const Layer& layer) {
  constexpr bool kSigned = std::is_signed_v<T>;
  const auto in = *affine(task.inputs[kImage]);
  const auto out = *affine(task.outputs[0]);
  const auto& scales = task.inputs[kWeights].quantization->scales;
  const auto bias = counted_bias(task, layer, in.scale);
  const auto bounds = stored_bounds<T>(task.node.activation, out);
  const bool per_channel = scales.size() > 1;
  if (!bias || !bounds || (per_channel && (!kSigned || layer.transposed))) return nullptr;
  const auto filter =
      signed_as(kSigned ? DType::i8 : DType::u8, task.inputs[kWeights], layer.weights);
  const auto is_possible = [](std::int32_t zero) {
    return kSigned ? zero == 0 : zero >= 0 && zero <= std::numeric_limits<T>::max();
  };
  if (!std::ranges::all_of(filter.zero_points, is_possible)) return nullptr;
  KernelParts parts(task, std::string(layer.transposed ? "deconvolution " : "convolution ") +
                              (per_channel ? "qc8"
                               : kSigned   ? "qs8"
                                           : "qu8"));
  const auto with_all = [&](auto add, auto... scale) {
    add(parts, task, layer, static_cast<T>(in.zero_point), in.scale, scale...,
        elements_of<T>(filter.weights), bias->data(), static_cast<T>(out.zero_point), out.scale,
        bounds->low, bounds->high, 0U);
  };
  if constexpr (kSigned) {
    if (layer.transposed) {
      with_all([](auto&&... a) { add_transposed<T, FLEETFIT_XNN(deconvolution2d_nhwc_qs8)>(a...); },
               scales[0]);
    } else if (per_channel) {
      with_all([](auto&&... a) { add_plain<T, FLEETFIT_XNN(convolution2d_nhwc_qc8)>(a...); },
               scales.data());
    } else {
      with_all([](auto&&... a) { add_plain<T, FLEETFIT_XNN(convolution2d_nhwc_qs8)>(a...); },
               scales[0]);
    }
  } else {
    const auto zero = static_cast<T>(filter.zero_points[0]);
    if (layer.transposed) {
      with_all([](auto&&... a) { add_transposed<T, FLEETFIT_XNN(deconvolution2d_nhwc_qu8)>(a...); },
               zero, scales[0]);
    } else {
      with_all([](auto&&... a) { add_plain<T, FLEETFIT_XNN(convolution2d_nhwc_qu8)>(a...); }, zero,
               scales[0]);
    }
  }
  parts.count_weights(layer.weights.size() + bias->size() * sizeof(std::int32_t));
  return std::move(parts).kernel(kActivated);
}

KernelPtr make_layer(const Task& task, const Layer& layer) {
  if (is_quantized(task)) {
    return task.outputs[0].dtype == DType::u8 ? make_stored<std::uint8_t>(task, layer)
                                              : make_stored<std::int8_t>(task, layer);
  }
  const bool floats =
      is_real(task.inputs[kImage]) && is_real(task.inputs[kWeights]) && is_real(task.outputs[0]);
  return floats ? make_float(task, layer) : nullptr;
}

/// Weights and bias are known, and weights have one scale, or one for each output along `axis`.
bool is_constant_filter(const Task& task, int axis, std::int64_t outputs) {
  const Operand& weights = task.inputs[kWeights];
  if (!weights.constant) return false;
  if (has_bias(task) && (!task.inputs[kBias].constant || task.inputs[kBias].shape.empty() ||
                         task.inputs[kBias].shape.back() != outputs ||
                         graph::elements(task.inputs[kBias].shape) != outputs)) {
    return false;
  }
  const auto& q = weights.quantization;
  if (!q || q->scales.size() == 1) return true;
  return q->axis == axis && std::ssize(q->scales) == outputs;
}

std::vector<std::byte> copied(const graph::TensorData& data) {
  const auto bytes = data.bytes();
  return {bytes.begin(), bytes.end()};
}

/// Rows and columns exchanged.
std::vector<std::byte> transposed(const graph::TensorData& data, std::size_t rows,
                                  std::size_t columns) {
  const auto bytes = data.bytes();
  const std::size_t width = bytes.size() / (rows * columns);
  std::vector<std::byte> result(bytes.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      std::copy_n(bytes.data() + (row * columns + column) * width, width,
                  result.data() + (column * rows + row) * width);
    }
  }
  return result;
}

bool has_extents(const Image& image, std::int64_t height, std::int64_t width) {
  return static_cast<std::int64_t>(image.height) == height &&
         static_cast<std::int64_t>(image.width) == width;
}

std::int64_t reach(std::uint32_t kernel, std::uint32_t dilation) {
  return (std::int64_t{kernel} - 1) * dilation + 1;
}

/// How many positions the library finds for the window along one dimension.
std::int64_t positions(std::size_t in, std::int64_t pads, std::int64_t window,
                       std::uint32_t stride) {
  return (static_cast<std::int64_t>(in) + pads - window) / stride + 1;
}

KernelPtr make_convolution(const Task& task, const graph::Conv& conv) {
  const auto in = image(task.inputs[kImage], conv.layout);
  const auto out = image(task.outputs[0], conv.layout);
  if (!in || !out || !is_constant_filter(task, 0, task.outputs[0].shape.back())) return nullptr;
  const auto pads = graph::resolve_padding(
      conv.window, graph::spatial_extents(task.inputs[kImage].shape, conv.layout));
  const auto window = window2d(conv.window, pads.begin, pads.end);
  if (!window) return nullptr;
  const auto& w = *window;
  const auto height = positions(in->height, std::int64_t{w.pads_begin.height} + w.pads_end.height,
                                reach(w.kernel.height, w.dilations.height), w.strides.height);
  const auto width = positions(in->width, std::int64_t{w.pads_begin.width} + w.pads_end.width,
                               reach(w.kernel.width, w.dilations.width), w.strides.width);
  if (!has_extents(*out, height, width)) return nullptr;
  return make_layer(task, {.window = w,
                           .in = *in,
                           .out_channels = out->channels,
                           .groups = static_cast<std::uint32_t>(conv.groups),
                           .weights = copied(*task.inputs[kWeights].constant)});
}

KernelPtr make_transposed_convolution(const Task& task, const graph::ConvTranspose& conv) {
  const auto in = image(task.inputs[kImage], conv.layout);
  const auto out = image(task.outputs[0], conv.layout);
  if (!in || !out || !is_constant_filter(task, 0, task.outputs[0].shape.back())) return nullptr;
  const auto pads =
      graph::resolve_padding(conv, graph::spatial_extents(task.inputs[kImage].shape, conv.layout),
                             graph::spatial_extents(task.outputs[0].shape, conv.layout));
  const auto window = window2d(conv.window, pads.begin, pads.end);
  if (!window) return nullptr;
  const auto& added = conv.output_padding;
  const Window2d::Side rows_and_columns{
      added.size() == 1 ? 0 : static_cast<std::uint32_t>(added[0]),
      static_cast<std::uint32_t>(added.back())};
  if (rows_and_columns.height >= window->strides.height ||
      rows_and_columns.width >= window->strides.width) {
    return nullptr;
  }
  return make_layer(task, {.window = *window,
                           .in = *in,
                           .out_channels = out->channels,
                           .groups = static_cast<std::uint32_t>(conv.groups),
                           .weights = copied(*task.inputs[kWeights].constant),
                           .transposed = rows_and_columns});
}

KernelPtr make_gemm(const Task& task, const graph::Gemm& gemm) {
  const Operand& b = task.inputs[kWeights];
  if (gemm.alpha != 1 || gemm.trans_a || (has_bias(task) && gemm.beta != 1) || b.shape.size() != 2)
    return nullptr;
  const auto out = gemm.trans_b ? b.shape[0] : b.shape[1];
  const auto in = gemm.trans_b ? b.shape[1] : b.shape[0];
  if (!is_constant_filter(task, gemm.trans_b ? 0 : 1, out)) return nullptr;
  const Window2d pixel{.kernel = {1, 1}, .strides = {1, 1}, .dilations = {1, 1}};
  return make_layer(
      task, {.window = pixel,
             .in = {.width = element_count(task.inputs[kImage]) / size(in), .channels = size(in)},
             .out_channels = size(out),
             .weights = gemm.trans_b ? copied(*b.constant)
                                     : transposed(*b.constant, size(in), size(out))});
}

KernelPtr make_matmul(const Task& task, const graph::MatMul& matmul) {
  const Operand& a = task.inputs[kImage];
  const Operand& b = task.inputs[kWeights];
  if (!b.constant || b.shape.size() != 2 || matmul.trans_a || a.shape.empty()) return nullptr;
  return make_gemm(task, graph::Gemm{.trans_b = matmul.trans_b});
}

}  // namespace

std::span<const KernelEntry> convolution_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Conv, make_convolution>(),
      entry<graph::ConvTranspose, make_transposed_convolution>(),
      entry<graph::Gemm, make_gemm>(),
      entry<graph::MatMul, make_matmul>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::xnnpack
