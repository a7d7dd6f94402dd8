// Functions of one tensor, and of two with broadcasting.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/xnnpack/xnnpack.h"

namespace fleetfit::engine::xnnpack {
namespace {

using graph::ActivationKind;
using graph::DType;
using graph::ElementwiseKind;
using graph::UnaryKind;

/// Rows of elements that lie together.
struct Rows {
  std::size_t count = 1;
  std::size_t width = 1;
};

template <class T, class Setup>
auto on_rows(Setup setup, const Place& from, std::size_t rows) {
  return [=](xnn_operator_t op, const Bindings& bindings, pthreadpool_t pool) {
    return setup(op, rows, from.as<const T>(bindings), place_of_output().as<T>(bindings), pool);
  };
}

// --- Two tensors

/// Extents of a tensor as the library takes them. A single number has one extent of one.
struct Extents {
  std::array<std::size_t, kMostDimensions> values{1};
  std::size_t count = 1;
};

std::optional<Extents> extents_of(const Operand& operand) {
  const auto& shape = operand.shape;
  if (shape.size() > kMostDimensions) return std::nullopt;
  Extents extents;
  if (shape.empty()) return extents;
  std::ranges::transform(shape, extents.values.begin(), size);
  extents.count = shape.size();
  return extents;
}

struct Pair {
  std::array<Place, 2> places;
  std::array<Extents, 2> extents;
};

template <class T, class Setup>
auto on_pair(Setup setup, const Pair& pair) {
  return [setup, pair](xnn_operator_t op, const Bindings& bindings, pthreadpool_t pool) {
    const auto& [a, b] = pair.extents;
    return setup(op, a.count, a.values.data(), b.count, b.values.data(),
                 pair.places[0].as<const T>(bindings), pair.places[1].as<const T>(bindings),
                 place_of_output().as<T>(bindings), pool);
  };
}

KernelPtr make_float_pair(const Task& task, ElementwiseKind kind, const Pair& pair) {
  const auto bounds = bounds_of(task.node.activation);
  const auto [low, high] = bounds.value_or(Bounds{});
  const auto bounded = [&](const char* name, auto create_function, auto setup) {
    KernelParts parts(task, name);
    parts.add(create(create_function, low, high, 0U), on_pair<float>(setup, pair));
    return std::move(parts).kernel(is_included(bounds));
  };
  const auto unbounded = [&](const char* name, auto create_function, auto setup) {
    KernelParts parts(task, name);
    parts.add(create(create_function, 0U), on_pair<float>(setup, pair));
    return std::move(parts).kernel(KernelParts::Activation::missing);
  };
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sum:
      return bounded("add f32", xnn_create_add_nd_f32, xnn_setup_add_nd_f32);
    case ElementwiseKind::sub:
      return bounded("subtract f32", xnn_create_subtract_nd_f32, xnn_setup_subtract_nd_f32);
    case ElementwiseKind::mul:
      return bounded("multiply f32", xnn_create_multiply_nd_f32, xnn_setup_multiply_nd_f32);
    case ElementwiseKind::div:
      return bounded("divide f32", xnn_create_divide_nd_f32, xnn_setup_divide_nd_f32);
    case ElementwiseKind::min:
      return unbounded("minimum f32", xnn_create_minimum_nd_f32, xnn_setup_minimum_nd_f32);
    case ElementwiseKind::max:
      return unbounded("maximum f32", xnn_create_maximum_nd_f32, xnn_setup_maximum_nd_f32);
    case ElementwiseKind::squared_difference:
      return unbounded("squared difference f32", xnn_create_squared_difference_nd_f32,
                       xnn_setup_squared_difference_nd_f32);
    default:
      return nullptr;
  }
}

template <class T, class Create, class Setup>
KernelPtr make_stored_pair(const Task& task, const char* name, const Pair& pair,
                           Create create_function, Setup setup) {
  const auto a = *affine(task.inputs[0]);
  const auto b = *affine(task.inputs[1]);
  const auto out = *affine(task.outputs[0]);
  const auto bounds = stored_bounds<T>(task.node.activation, out);
  if (!bounds) return nullptr;
  KernelParts parts(task, name);
  parts.add(
      create(create_function, static_cast<T>(a.zero_point), a.scale, static_cast<T>(b.zero_point),
             b.scale, static_cast<T>(out.zero_point), out.scale, bounds->low, bounds->high, 0U),
      on_pair<T>(setup, pair));
  return std::move(parts).kernel(KernelParts::Activation::included);
}

KernelPtr make_signed_pair(const Task& task, ElementwiseKind kind, const Pair& pair) {
  using T = std::int8_t;
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sum:
      return make_stored_pair<T>(task, "add qs8", pair, xnn_create_add_nd_qs8,
                                 xnn_setup_add_nd_qs8);
    case ElementwiseKind::sub:
      return make_stored_pair<T>(task, "subtract qs8", pair, xnn_create_subtract_nd_qs8,
                                 xnn_setup_subtract_nd_qs8);
    case ElementwiseKind::mul:
      return make_stored_pair<T>(task, "multiply qs8", pair, xnn_create_multiply_nd_qs8,
                                 xnn_setup_multiply_nd_qs8);
    default:
      return nullptr;
  }
}

KernelPtr make_unsigned_pair(const Task& task, ElementwiseKind kind, const Pair& pair) {
  using T = std::uint8_t;
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sum:
      return make_stored_pair<T>(task, "add qu8", pair, xnn_create_add_nd_qu8,
                                 xnn_setup_add_nd_qu8);
    case ElementwiseKind::sub:
      return make_stored_pair<T>(task, "subtract qu8", pair, xnn_create_subtract_nd_qu8,
                                 xnn_setup_subtract_nd_qu8);
    case ElementwiseKind::mul:
      return make_stored_pair<T>(task, "multiply qu8", pair, xnn_create_multiply_nd_qu8,
                                 xnn_setup_multiply_nd_qu8);
    default:
      return nullptr;
  }
}

// --- Activations of stored numbers

/// `before` is what stands between the strides and the quantization in the arguments.
template <class T, class Create, class Setup, class... Before>
KernelPtr make_stored_function(const Task& task, const char* name, Create create_function,
                               Setup setup, Before... before) {
  const auto in = *affine(task.inputs[0]);
  const auto out = *affine(task.outputs[0]);
  const auto bounds = stored_bounds<T>(task.node.activation, out);
  if (!bounds) return nullptr;
  const auto n = element_count(task.inputs[0]);
  KernelParts parts(task, name);
  parts.add(create(create_function, n, n, n, before..., static_cast<T>(in.zero_point), in.scale,
                   static_cast<T>(out.zero_point), out.scale, bounds->low, bounds->high, 0U),
            on_rows<T>(setup, place_of_input(task, 0), 1));
  return std::move(parts).kernel(KernelParts::Activation::included);
}

template <class T, class Create, class Setup>
KernelPtr make_stored_clamp(const Task& task, const graph::Activation& function, const char* name,
                            Create create_function, Setup setup) {
  const auto bounds = stored_bounds<T>(function, *affine(task.outputs[0]));
  if (!bounds || task.node.activation || !same_meaning(task.inputs[0], task.outputs[0]))
    return nullptr;
  const auto n = element_count(task.inputs[0]);
  KernelParts parts(task, name);
  parts.add(create(create_function, n, n, n, bounds->low, bounds->high, 0U),
            on_rows<T>(setup, place_of_input(task, 0), 1));
  return std::move(parts).kernel(KernelParts::Activation::included);
}

KernelPtr make_signed_activation(const Task& task, const graph::Activation& function) {
  using T = std::int8_t;
  switch (function.kind) {
    case ActivationKind::relu:
    case ActivationKind::clip:
      return make_stored_clamp<T>(task, function, "clamp s8", xnn_create_clamp_nc_s8,
                                  xnn_setup_clamp_nc_s8);
    case ActivationKind::sigmoid:
      return make_stored_function<T>(task, "sigmoid qs8", xnn_create_sigmoid_nc_qs8,
                                     xnn_setup_sigmoid_nc_qs8);
    case ActivationKind::tanh:
      return make_stored_function<T>(task, "tanh qs8", xnn_create_tanh_nc_qs8,
                                     xnn_setup_tanh_nc_qs8);
    case ActivationKind::elu:
      return make_stored_function<T>(task, "elu qs8", xnn_create_elu_nc_qs8, xnn_setup_elu_nc_qs8,
                                     function.alpha);
    default:
      return nullptr;
  }
}

KernelPtr make_unsigned_activation(const Task& task, const graph::Activation& function) {
  using T = std::uint8_t;
  switch (function.kind) {
    case ActivationKind::relu:
    case ActivationKind::clip:
      return make_stored_clamp<T>(task, function, "clamp u8", xnn_create_clamp_nc_u8,
                                  xnn_setup_clamp_nc_u8);
    case ActivationKind::sigmoid:
      return make_stored_function<T>(task, "sigmoid qu8", xnn_create_sigmoid_nc_qu8,
                                     xnn_setup_sigmoid_nc_qu8);
    case ActivationKind::tanh:
      return make_stored_function<T>(task, "tanh qu8", xnn_create_tanh_nc_qu8,
                                     xnn_setup_tanh_nc_qu8);
    case ActivationKind::leaky_relu:
      return make_stored_function<T>(task, "leaky relu qu8", xnn_create_leaky_relu_nc_qu8,
                                     xnn_setup_leaky_relu_nc_qu8, function.alpha);
    default:
      return nullptr;
  }
}

/// Of the dimensions from the axis on, if these are the last ones.
std::optional<Rows> rows_of(const Operand& operand, const graph::Softmax& softmax) {
  const auto& shape = operand.shape;
  const auto rank = std::ssize(shape);
  const auto axis = softmax.axis + (softmax.axis < 0 ? rank : 0);
  if (axis < 0 || axis >= rank || (axis != rank - 1 && !softmax.to_end)) return std::nullopt;
  const auto width = graph::elements(graph::Shape(shape.begin() + axis, shape.end()));
  return Rows{element_count(operand) / size(width), size(width)};
}

KernelPtr make_activation(const Task& task, const graph::Activate& activate) {
  const Operand& input = task.inputs[0];
  if (is_float(input) && is_float(task.outputs[0])) {
    KernelParts parts(task, std::string(graph::type_name(activate.function.kind)) + " f32");
    parts.add_activation(activate.function, place_of_input(task, 0), place_of_output(),
                         element_count(input));
    return std::move(parts).kernel(KernelParts::Activation::missing);
  }
  if (!affine(input) || !affine(task.outputs[0]) || input.dtype != task.outputs[0].dtype)
    return nullptr;
  return input.dtype == DType::u8 ? make_unsigned_activation(task, activate.function)
                                  : make_signed_activation(task, activate.function);
}

KernelPtr make_unary(const Task& task, const graph::Unary& op) {
  if (!is_float(task.inputs[0]) || !is_float(task.outputs[0])) return nullptr;
  const auto n = element_count(task.inputs[0]);
  const auto make = [&](const char* name, auto create_function, auto setup) {
    KernelParts parts(task, name);
    parts.add(create(create_function, n, n, n, 0U),
              on_rows<float>(setup, place_of_input(task, 0), 1));
    return std::move(parts).kernel(KernelParts::Activation::missing);
  };
  switch (op.kind) {
    case UnaryKind::abs:
      return make("abs f32", xnn_create_abs_nc_f32, xnn_setup_abs_nc_f32);
    case UnaryKind::neg:
      return make("negate f32", xnn_create_negate_nc_f32, xnn_setup_negate_nc_f32);
    case UnaryKind::sqrt:
      return make("square root f32", xnn_create_square_root_nc_f32, xnn_setup_square_root_nc_f32);
    case UnaryKind::floor:
      return make("floor f32", xnn_create_floor_nc_f32, xnn_setup_floor_nc_f32);
    case UnaryKind::ceil:
      return make("ceiling f32", xnn_create_ceiling_nc_f32, xnn_setup_ceiling_nc_f32);
    case UnaryKind::round:
      return make("rounding f32", xnn_create_bankers_rounding_nc_f32,
                  xnn_setup_bankers_rounding_nc_f32);
    case UnaryKind::square:
      return make("square f32", xnn_create_square_nc_f32, xnn_setup_square_nc_f32);
    default:
      return nullptr;
  }
}

KernelPtr make_prelu(const Task& task) {
  const Operand& slope = task.inputs[1];
  const auto& shape = task.inputs[0].shape;
  if (!is_float(task.inputs[0]) || !is_float(slope) || !is_float(task.outputs[0]) ||
      !slope.constant || shape.empty() || slope.shape.size() > shape.size()) {
    return nullptr;
  }
  const auto channels = size(shape.back());
  const auto count = element_count(slope);
  const bool per_channel = !slope.shape.empty() && size(slope.shape.back()) == count;
  if (count != 1 && (count != channels || !per_channel)) return nullptr;
  const auto given = slope.constant->as<float>();
  std::vector<float> slopes(channels, given[0]);
  if (count == channels) std::ranges::copy(given, slopes.begin());
  KernelParts parts(task, "prelu f32");
  parts.add(create(xnn_create_prelu_nc_f32, channels, channels, channels, slopes.data(), 0U),
            on_rows<float>(xnn_setup_prelu_nc_f32, place_of_input(task, 0),
                           element_count(task.inputs[0]) / channels));
  parts.count_weights(channels * sizeof(float));
  return std::move(parts).kernel(KernelParts::Activation::missing);
}

KernelPtr make_softmax(const Task& task, const graph::Softmax& softmax) {
  const auto rows = rows_of(task.inputs[0], softmax);
  if (!rows || softmax.log) return nullptr;
  const Place from = place_of_input(task, 0);
  const auto width = rows->width;
  if (is_float(task.inputs[0]) && is_float(task.outputs[0])) {
    KernelParts parts(task, "softmax f32");
    parts.add(create(xnn_create_softmax_nc_f32, width, width, width, 0U),
              on_rows<float>(xnn_setup_softmax_nc_f32, from, rows->count));
    return std::move(parts).kernel(KernelParts::Activation::missing);
  }
  using T = std::uint8_t;
  const auto in = affine(task.inputs[0]);
  const auto out = affine(task.outputs[0]);
  if (!in || !out || task.inputs[0].dtype != DType::u8 || task.outputs[0].dtype != DType::u8 ||
      task.node.activation) {
    return nullptr;
  }
  KernelParts parts(task, "softmax qu8");
  parts.add(create(xnn_create_softmax_nc_qu8, width, width, width, in->scale,
                   static_cast<T>(out->zero_point), out->scale, 0U),
            on_rows<T>(xnn_setup_softmax_nc_qu8, from, rows->count));
  return std::move(parts).kernel(KernelParts::Activation::included);
}

KernelPtr make_elementwise(const Task& task, const graph::Elementwise& op) {
  if (task.inputs.size() != 2) return nullptr;
  const Operand& a = task.inputs[0];
  const Operand& b = task.inputs[1];
  const Operand& out = task.outputs[0];
  const auto first = extents_of(a);
  const auto second = extents_of(b);
  const bool floats = is_float(a) && is_float(b) && is_float(out);
  const bool stored =
      affine(a) && affine(b) && affine(out) && a.dtype == out.dtype && b.dtype == out.dtype;
  if (!first || !second || (!floats && !stored)) return nullptr;
  const Pair pair{{place_of_input(task, 0), place_of_input(task, 1)}, {*first, *second}};
  if (floats) return make_float_pair(task, op.kind, pair);
  return out.dtype == DType::u8 ? make_unsigned_pair(task, op.kind, pair)
                                : make_signed_pair(task, op.kind, pair);
}

}  // namespace

std::span<const KernelEntry> elementwise_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Activate, make_activation>(),
      entry<graph::Unary, make_unary>(),
      entry<graph::PRelu>(make_prelu),
      entry<graph::Softmax, make_softmax>(),
      entry<graph::Elementwise, make_elementwise>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::xnnpack
