// Tensors converted, copied, joined, padded and resized.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/xnnpack/xnnpack.h"

namespace fleetfit::engine::xnnpack {
namespace {

using graph::DType;
using graph::Ints;

/// Rows of bytes, in one tensor further apart than in the other.
struct RowCopy {
  std::size_t rows = 1;
  std::size_t width = 1;
  std::size_t from_stride = 1;
  std::size_t to_stride = 1;
};

void add_copy(KernelParts& parts, const RowCopy& copy, const Place& from, const Place& to) {
  parts.add(create(xnn_create_copy_nc_x8, copy.width, copy.from_stride, copy.to_stride, 0U),
            between<std::byte>(xnn_setup_copy_nc_x8, from, to, copy.rows));
}

/// How a tensor falls apart along an axis: rows before it, bytes from it on.
struct Parts {
  std::size_t rows = 1;
  std::size_t row_bytes = 1;
};

Parts parts_along(const Operand& operand, std::size_t axis) {
  const auto& shape = operand.shape;
  const auto split = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  return {size(graph::elements(graph::Shape(shape.begin(), split))),
          size(graph::elements(graph::Shape(split, shape.end()))) * graph::size_of(operand.dtype)};
}

template <auto create_function, auto setup, class From, class To, class... Rest>
KernelPtr make_converted(const Task& task, const char* name, Rest... rest) {
  KernelParts parts(task, name);
  parts.add_function<create_function, setup, From, To>(place_of_input(task, 0), place_of_output(),
                                                       element_count(task.inputs[0]), rest...);
  return std::move(parts).kernel(kActivated);
}

/// Scales of both spatial dimensions are the quotients of the extents, which is all that the
/// library knows.
bool scales_by_extents(const Task& task) {
  const auto& in = task.inputs[0].shape;
  const auto& out = task.outputs[0].shape;
  const bool by_sizes = has_input(task, 3) && graph::elements(task.inputs[3].shape) > 0;
  if (by_sizes) return true;
  if (task.inputs.size() < 3 || !task.inputs[2].constant || task.inputs[2].dtype != DType::f32)
    return false;
  const auto scales = task.inputs[2].constant->as<float>();
  for (std::size_t i = 0; i < in.size() && i < scales.size(); ++i) {
    const double extent = static_cast<double>(in[i]) * static_cast<double>(scales[i]);
    if (std::abs(extent - static_cast<double>(out[i])) > 1e-5 * extent) return false;
  }
  return scales.size() == in.size();
}

std::optional<std::uint32_t> resize_flags(graph::CoordinateMode mode, const Image& out) {
  switch (mode) {
    case graph::CoordinateMode::half_pixel:
      return 0;
    case graph::CoordinateMode::pytorch_half_pixel:
      if (out.height == 1 || out.width == 1) return std::nullopt;
      return 0;
    case graph::CoordinateMode::align_corners:
      if (out.height == 1 || out.width == 1) return std::nullopt;
      return XNN_FLAG_ALIGN_CORNERS;
    case graph::CoordinateMode::asymmetric:
      return XNN_FLAG_TENSORFLOW_LEGACY_MODE;
  }
  return std::nullopt;
}

/// What goes around a padded tensor; nothing if that is not known.
std::optional<std::uint32_t> padding_value(const Task& task) {
  const Operand& tensor = task.inputs[0];
  if (has_input(task, 2)) {
    const Operand& value = task.inputs[2];
    if (!value.constant || !same_meaning(value, tensor) || element_count(value) != 1)
      return std::nullopt;
    std::uint32_t bits = 0;
    std::ranges::copy(value.constant->bytes(), reinterpret_cast<std::byte*>(&bits));
    return bits;
  }
  if (!tensor.quantization) return 0;
  const auto stored = affine(tensor);
  if (!stored) return std::nullopt;
  return static_cast<std::uint8_t>(stored->zero_point);
}

/// A tensor with the elements that are added before and after it.
struct Margins {
  std::array<std::size_t, kMostDimensions> extents{1};
  std::array<std::size_t, kMostDimensions> before{};
  std::array<std::size_t, kMostDimensions> after{};
  std::size_t count = 1;
};

std::optional<Margins> margins(const Operand& operand, const Ints& pads) {
  const auto rank = operand.shape.size();
  if (rank == 0 || rank > kMostDimensions || pads.size() != 2 * rank) return std::nullopt;
  if (std::ranges::any_of(pads, [](std::int64_t pad) { return pad < 0; })) return std::nullopt;
  Margins result{.count = rank};
  for (std::size_t i = 0; i < rank; ++i) {
    result.extents[i] = size(operand.shape[i]);
    result.before[i] = size(pads[i]);
    result.after[i] = size(pads[rank + i]);
  }
  return result;
}

KernelPtr make_copy(const Task& task) {
  if (!same_meaning(task.inputs[0], task.outputs[0]) || graph::size_of(task.inputs[0].dtype) == 0 ||
      (task.node.activation && !is_real(task.outputs[0]))) {
    return nullptr;
  }
  const auto bytes = storage_bytes(task.outputs[0]);
  KernelParts parts(task, "copy");
  add_copy(parts, {1, bytes, bytes, bytes}, place_of_input(task, 0), place_of_output());
  return std::move(parts).kernel(kNotActivated);
}

KernelPtr make_conversion(const Task& task) {
  const Operand& from = task.inputs[0];
  const Operand& to = task.outputs[0];
  if (task.node.activation) return nullptr;
  if (const auto out = affine(to); out && is_real(from)) {
    if (to.dtype == DType::u8) {
      return make_converted<FLEETFIT_XNN(convert_nc_f32_qu8), float, U8>(
          task, "convert f32 qu8", out->scale, static_cast<U8>(out->zero_point), U8{0}, U8{255});
    }
    return make_converted<FLEETFIT_XNN(convert_nc_f32_qs8), float, S8>(
        task, "convert f32 qs8", out->scale, static_cast<S8>(out->zero_point), S8{-128}, S8{127});
  }
  if (const auto in = affine(from); in && is_real(to)) {
    if (from.dtype == DType::u8) {
      return make_converted<FLEETFIT_XNN(convert_nc_qu8_f32), U8, float>(
          task, "convert qu8 f32", in->scale, static_cast<U8>(in->zero_point));
    }
    return make_converted<FLEETFIT_XNN(convert_nc_qs8_f32), S8, float>(
        task, "convert qs8 f32", in->scale, static_cast<S8>(in->zero_point));
  }
  return same_meaning(from, to) ? make_copy(task) : nullptr;
}

KernelPtr make_concat(const Task& task, const graph::Concat& concat) {
  const Operand& out = task.outputs[0];
  const auto axis = resolve_axis(concat.axis, out.shape.size());
  if (!axis || (task.node.activation && !is_real(out))) return nullptr;
  const Parts whole = parts_along(out, *axis);
  KernelParts parts(task, "copies");
  Place to = place_of_output();
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    if (!same_meaning(task.inputs[i], out)) return nullptr;
    const auto width = parts_along(task.inputs[i], *axis).row_bytes;
    add_copy(parts, {whole.rows, width, width, whole.row_bytes}, place_of_input(task, i), to);
    to.offset += width;
  }
  return std::move(parts).kernel(kNotActivated);
}

KernelPtr make_split(const Task& task, const graph::Split& split) {
  const Operand& in = task.inputs[0];
  const auto axis = resolve_axis(split.axis, in.shape.size());
  if (!axis || task.node.activation) return nullptr;
  const Parts whole = parts_along(in, *axis);
  KernelParts parts(task, "copies");
  Place from = place_of_input(task, 0);
  for (std::size_t i = 0; i < task.outputs.size(); ++i) {
    if (!same_meaning(task.outputs[i], in)) return nullptr;
    const auto width = parts_along(task.outputs[i], *axis).row_bytes;
    add_copy(parts, {whole.rows, width, whole.row_bytes, width}, from, place_of_output(i));
    from.offset += width;
  }
  return std::move(parts).kernel(kActivated);
}

KernelPtr make_pad(const Task& task, const graph::Pad& pad) {
  const auto pads = constant_ints(task.inputs[1]);
  const auto value = padding_value(task);
  if (pad.mode != graph::PadMode::constant || !pads || !value ||
      !same_meaning(task.inputs[0], task.outputs[0]) ||
      (task.node.activation && !is_real(task.outputs[0]))) {
    return nullptr;
  }
  const auto around = margins(task.inputs[0], *pads);
  if (!around) return nullptr;
  KernelParts parts(task, "constant pad");
  const auto add = [&](auto create_function, auto setup) {
    parts.add(create(create_function, &*value, 0U),
              [setup, m = *around, from = place_of_input(task, 0)](
                  xnn_operator_t op, const Bindings& bindings, pthreadpool_t pool) {
                return setup(op, m.count, m.extents.data(), m.before.data(), m.after.data(),
                             from.address(bindings), place_of_output().address(bindings), pool);
              });
  };
  switch (graph::size_of(task.inputs[0].dtype)) {
    case sizeof(std::uint8_t):
      add(FLEETFIT_XNN(constant_pad_nd_x8));
      break;
    case sizeof(std::uint16_t):
      add(FLEETFIT_XNN(constant_pad_nd_x16));
      break;
    case sizeof(std::uint32_t):
      add(FLEETFIT_XNN(constant_pad_nd_x32));
      break;
    default:
      return nullptr;
  }
  return std::move(parts).kernel(kNotActivated);
}

KernelPtr make_resize(const Task& task, const graph::Resize& resize) {
  // Images that have their channels last; the operator itself does not say which they are.
  const auto in = image(task.inputs[0], graph::Layout::nhwc);
  const auto out = image(task.outputs[0], graph::Layout::nhwc);
  if (!in || !out || task.inputs[0].shape.size() != 4 || in->channels != out->channels ||
      in->batch != out->batch || resize.mode != graph::ResizeMode::linear ||
      !same_meaning(task.inputs[0], task.outputs[0]) || !scales_by_extents(task)) {
    return nullptr;
  }
  const auto flags = resize_flags(resize.coordinates, *out);
  if (!flags) return nullptr;
  const auto make = [&]<class T>(T, const char* name, auto create_function, auto setup) {
    return one_operator<T>(
        task, name, kNotActivated,
        create(create_function, in->channels, in->channels, in->channels, *flags), setup, in->batch,
        in->height, in->width, out->height, out->width);
  };
  if (is_real(task.inputs[0])) {
    return make(float{}, "resize bilinear f32", FLEETFIT_XNN(resize_bilinear2d_nhwc_f32));
  }
  if (!affine(task.inputs[0]) || task.node.activation) return nullptr;
  return task.inputs[0].dtype == DType::u8
             ? make(U8{}, "resize bilinear u8", FLEETFIT_XNN(resize_bilinear2d_nhwc_u8))
             : make(S8{}, "resize bilinear s8", FLEETFIT_XNN(resize_bilinear2d_nhwc_s8));
}

KernelPtr make_depth_to_space(const Task& task, const graph::DepthToSpace& op) {
  const auto in = image(task.inputs[0], op.layout);
  const auto out = image(task.outputs[0], op.layout);
  if (!in || !out || task.inputs[0].shape.size() != 4 || op.column_row_depth ||
      graph::size_of(task.inputs[0].dtype) != sizeof(std::uint32_t) ||
      !same_meaning(task.inputs[0], task.outputs[0]) ||
      (task.node.activation && !is_real(task.outputs[0]))) {
    return nullptr;
  }
  return one_operator<std::byte>(
      task, "depth to space x32", kNotActivated,
      create(xnn_create_depth_to_space_nhwc_x32, out->channels, in->channels, out->channels,
             static_cast<std::uint32_t>(op.block), 0U),
      xnn_setup_depth_to_space_nhwc_x32, in->batch, in->height, in->width);
}

KernelPtr make_channel_shuffle(const Task& task, const graph::ChannelShuffle& op) {
  const auto& shape = task.inputs[0].shape;
  const auto width = graph::size_of(task.inputs[0].dtype);
  if (is_joined_shuffle(task) || op.layout != graph::Layout::nhwc ||
      !same_meaning(task.inputs[0], task.outputs[0]) ||
      (width != 1 && width != sizeof(std::uint32_t)) ||
      (task.node.activation && !is_real(task.outputs[0]))) {
    return nullptr;
  }
  const auto channels = size(shape.back());
  const auto groups = size(op.groups);
  const auto make = [&](auto create_function, auto setup) {
    return one_operator<std::byte>(
        task, "channel shuffle", kNotActivated,
        create(create_function, groups, channels / groups, channels, channels, 0U), setup,
        element_count(task.inputs[0]) / channels);
  };
  return width == 1 ? make(FLEETFIT_XNN(channel_shuffle_nc_x8))
                    : make(FLEETFIT_XNN(channel_shuffle_nc_x32));
}

}  // namespace

std::span<const KernelEntry> movement_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Requantize>(make_conversion),
      entry<graph::Identity>(make_copy),
      entry<graph::Reshape>(make_copy),
      entry<graph::Flatten>(make_copy),
      entry<graph::Squeeze>(make_copy),
      entry<graph::Unsqueeze>(make_copy),
      entry<graph::Concat, make_concat>(),
      entry<graph::Split, make_split>(),
      entry<graph::Pad, make_pad>(),
      entry<graph::Resize, make_resize>(),
      entry<graph::DepthToSpace, make_depth_to_space>(),
      entry<graph::ChannelShuffle, make_channel_shuffle>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::xnnpack
