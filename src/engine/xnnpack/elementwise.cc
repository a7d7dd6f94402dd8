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

/// How the library does what an operator is for one type of results.
template <class Kind, class... Operands>
struct Way {
  Kind kind;
  DType type;
  const char* name;  ///< of the kernel
  KernelPtr (*make)(const Task&, const char* name, const Operands&...);
};

template <class Ways, class Kind, class... Operands>
KernelPtr make_by(const Ways& ways, Kind kind, const Task& task, const Operands&... operands) {
  for (const auto& way : ways) {
    if (way.kind == kind && way.type == task.outputs[0].dtype) {
      return way.make(task, way.name, operands...);
    }
  }
  return nullptr;
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

template <auto create_function, auto setup>
KernelPtr bounded(const Task& task, const char* name, const Pair& pair) {
  const auto bounds = bounds_of(task.node.activation);
  const auto [low, high] = bounds.value_or(Bounds{});
  KernelParts parts(task, name);
  parts.add(create(create_function, low, high, 0U), on_pair<float>(setup, pair));
  return std::move(parts).kernel(is_included(bounds));
}

template <auto create_function, auto setup>
KernelPtr unbounded(const Task& task, const char* name, const Pair& pair) {
  KernelParts parts(task, name);
  parts.add(create(create_function, 0U), on_pair<float>(setup, pair));
  return std::move(parts).kernel(kNotActivated);
}

template <class T, auto create_function, auto setup>
KernelPtr stored(const Task& task, const char* name, const Pair& pair) {
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
  return std::move(parts).kernel(kActivated);
}

constexpr Way<ElementwiseKind, Pair> kPairs[] = {
    {ElementwiseKind::add, DType::f32, "add f32", bounded<FLEETFIT_XNN(add_nd_f32)>},
    {ElementwiseKind::sub, DType::f32, "subtract f32", bounded<FLEETFIT_XNN(subtract_nd_f32)>},
    {ElementwiseKind::mul, DType::f32, "multiply f32", bounded<FLEETFIT_XNN(multiply_nd_f32)>},
    {ElementwiseKind::div, DType::f32, "divide f32", bounded<FLEETFIT_XNN(divide_nd_f32)>},
    {ElementwiseKind::min, DType::f32, "minimum f32", unbounded<FLEETFIT_XNN(minimum_nd_f32)>},
    {ElementwiseKind::max, DType::f32, "maximum f32", unbounded<FLEETFIT_XNN(maximum_nd_f32)>},
    {ElementwiseKind::squared_difference, DType::f32, "squared difference f32",
     unbounded<FLEETFIT_XNN(squared_difference_nd_f32)>},
    {ElementwiseKind::add, DType::i8, "add qs8", stored<S8, FLEETFIT_XNN(add_nd_qs8)>},
    {ElementwiseKind::sub, DType::i8, "subtract qs8", stored<S8, FLEETFIT_XNN(subtract_nd_qs8)>},
    {ElementwiseKind::mul, DType::i8, "multiply qs8", stored<S8, FLEETFIT_XNN(multiply_nd_qs8)>},
    {ElementwiseKind::add, DType::u8, "add qu8", stored<U8, FLEETFIT_XNN(add_nd_qu8)>},
    {ElementwiseKind::sub, DType::u8, "subtract qu8", stored<U8, FLEETFIT_XNN(subtract_nd_qu8)>},
    {ElementwiseKind::mul, DType::u8, "multiply qu8", stored<U8, FLEETFIT_XNN(multiply_nd_qu8)>},
};

// --- Functions of stored numbers

/// `before` is what stands between the strides and the quantization in the arguments.
template <class T, auto create_function, auto setup, class... Before>
KernelPtr make_stored(const Task& task, const char* name, Before... before) {
  const auto in = *affine(task.inputs[0]);
  const auto out = *affine(task.outputs[0]);
  const auto bounds = stored_bounds<T>(task.node.activation, out);
  if (!bounds) return nullptr;
  KernelParts parts(task, name);
  parts.add_function<create_function, setup, T>(
      place_of_input(task, 0), place_of_output(), element_count(task.inputs[0]), before...,
      static_cast<T>(in.zero_point), in.scale, static_cast<T>(out.zero_point), out.scale,
      bounds->low, bounds->high);
  return std::move(parts).kernel(kActivated);
}

template <class T, auto create_function, auto setup>
KernelPtr stored_function(const Task& task, const char* name, const graph::Activation&) {
  return make_stored<T, create_function, setup>(task, name);
}

template <class T, auto create_function, auto setup>
KernelPtr stored_function_of_alpha(const Task& task, const char* name,
                                   const graph::Activation& function) {
  return make_stored<T, create_function, setup>(task, name, function.alpha);
}

template <class T, auto create_function, auto setup>
KernelPtr stored_clamp(const Task& task, const char* name, const graph::Activation& function) {
  const auto bounds = stored_bounds<T>(function, *affine(task.outputs[0]));
  if (!bounds || task.node.activation || !same_meaning(task.inputs[0], task.outputs[0]))
    return nullptr;
  KernelParts parts(task, name);
  parts.add_function<create_function, setup, T>(place_of_input(task, 0), place_of_output(),
                                                element_count(task.inputs[0]), bounds->low,
                                                bounds->high);
  return std::move(parts).kernel(kActivated);
}

constexpr Way<ActivationKind, graph::Activation> kStoredActivations[] = {
    {ActivationKind::relu, DType::i8, "clamp s8", stored_clamp<S8, FLEETFIT_XNN(clamp_nc_s8)>},
    {ActivationKind::clip, DType::i8, "clamp s8", stored_clamp<S8, FLEETFIT_XNN(clamp_nc_s8)>},
    {ActivationKind::sigmoid, DType::i8, "sigmoid qs8",
     stored_function<S8, FLEETFIT_XNN(sigmoid_nc_qs8)>},
    {ActivationKind::tanh, DType::i8, "tanh qs8", stored_function<S8, FLEETFIT_XNN(tanh_nc_qs8)>},
    {ActivationKind::elu, DType::i8, "elu qs8",
     stored_function_of_alpha<S8, FLEETFIT_XNN(elu_nc_qs8)>},
    {ActivationKind::relu, DType::u8, "clamp u8", stored_clamp<U8, FLEETFIT_XNN(clamp_nc_u8)>},
    {ActivationKind::clip, DType::u8, "clamp u8", stored_clamp<U8, FLEETFIT_XNN(clamp_nc_u8)>},
    {ActivationKind::sigmoid, DType::u8, "sigmoid qu8",
     stored_function<U8, FLEETFIT_XNN(sigmoid_nc_qu8)>},
    {ActivationKind::tanh, DType::u8, "tanh qu8", stored_function<U8, FLEETFIT_XNN(tanh_nc_qu8)>},
    {ActivationKind::leaky_relu, DType::u8, "leaky relu qu8",
     stored_function_of_alpha<U8, FLEETFIT_XNN(leaky_relu_nc_qu8)>},
};

// --- Functions of floats

template <auto create_function, auto setup>
KernelPtr unary(const Task& task, const char* name) {
  KernelParts parts(task, name);
  parts.add_function<create_function, setup>(place_of_input(task, 0), place_of_output(),
                                             element_count(task.inputs[0]));
  return std::move(parts).kernel(kNotActivated);
}

constexpr Way<UnaryKind> kUnary[] = {
    {UnaryKind::abs, DType::f32, "abs f32", unary<FLEETFIT_XNN(abs_nc_f32)>},
    {UnaryKind::neg, DType::f32, "negate f32", unary<FLEETFIT_XNN(negate_nc_f32)>},
    {UnaryKind::sqrt, DType::f32, "square root f32", unary<FLEETFIT_XNN(square_root_nc_f32)>},
    {UnaryKind::floor, DType::f32, "floor f32", unary<FLEETFIT_XNN(floor_nc_f32)>},
    {UnaryKind::ceil, DType::f32, "ceiling f32", unary<FLEETFIT_XNN(ceiling_nc_f32)>},
    {UnaryKind::round, DType::f32, "rounding f32", unary<FLEETFIT_XNN(bankers_rounding_nc_f32)>},
    {UnaryKind::square, DType::f32, "square f32", unary<FLEETFIT_XNN(square_nc_f32)>},
};

/// Rows of elements that lie together.
struct Rows {
  std::size_t count = 1;
  std::size_t width = 1;
};

/// Of the dimensions from the axis on, if these are the last ones.
std::optional<Rows> rows_of(const Operand& operand, const graph::Softmax& softmax) {
  const auto& shape = operand.shape;
  const auto axis = resolve_axis(softmax.axis, shape.size());
  if (!axis || (*axis + 1 != shape.size() && !softmax.to_end)) return std::nullopt;
  const auto first = shape.begin() + static_cast<std::ptrdiff_t>(*axis);
  const auto width = graph::elements(graph::Shape(first, shape.end()));
  return Rows{element_count(operand) / size(width), size(width)};
}

KernelPtr make_activation(const Task& task, const graph::Activate& activate) {
  const Operand& input = task.inputs[0];
  if (is_real(input) && is_real(task.outputs[0])) {
    KernelParts parts(task, std::string(graph::type_name(activate.function.kind)) + " f32");
    parts.add_activation(activate.function, place_of_input(task, 0), place_of_output(),
                         element_count(input));
    return std::move(parts).kernel(kNotActivated);
  }
  if (!affine(input) || !affine(task.outputs[0]) || input.dtype != task.outputs[0].dtype)
    return nullptr;
  return make_by(kStoredActivations, activate.function.kind, task, activate.function);
}

KernelPtr make_unary(const Task& task, const graph::Unary& op) {
  const bool floats = is_real(task.inputs[0]) && is_real(task.outputs[0]);
  return floats ? make_by(kUnary, op.kind, task) : nullptr;
}

KernelPtr make_prelu(const Task& task) {
  const Operand& slope = task.inputs[1];
  const auto& shape = task.inputs[0].shape;
  if (!is_real(task.inputs[0]) || !is_real(slope) || !is_real(task.outputs[0]) || !slope.constant ||
      shape.empty() || slope.shape.size() > shape.size()) {
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
            between<float>(xnn_setup_prelu_nc_f32, place_of_input(task, 0), place_of_output(),
                           element_count(task.inputs[0]) / channels));
  parts.count_weights(channels * sizeof(float));
  return std::move(parts).kernel(kNotActivated);
}

KernelPtr make_softmax(const Task& task, const graph::Softmax& softmax) {
  const auto rows = rows_of(task.inputs[0], softmax);
  if (!rows || softmax.log) return nullptr;
  const auto width = rows->width;
  if (is_real(task.inputs[0]) && is_real(task.outputs[0])) {
    return one_operator<float>(task, "softmax f32", kNotActivated,
                               create(xnn_create_softmax_nc_f32, width, width, width, 0U),
                               xnn_setup_softmax_nc_f32, rows->count);
  }
  const auto in = affine(task.inputs[0]);
  const auto out = affine(task.outputs[0]);
  if (!in || !out || task.inputs[0].dtype != DType::u8 || task.outputs[0].dtype != DType::u8 ||
      task.node.activation) {
    return nullptr;
  }
  return one_operator<U8>(task, "softmax qu8", kActivated,
                          create(xnn_create_softmax_nc_qu8, width, width, width, in->scale,
                                 static_cast<U8>(out->zero_point), out->scale, 0U),
                          xnn_setup_softmax_nc_qu8, rows->count);
}

KernelPtr make_elementwise(const Task& task, const graph::Elementwise& op) {
  if (task.inputs.size() != 2) return nullptr;
  const Operand& a = task.inputs[0];
  const Operand& b = task.inputs[1];
  const Operand& out = task.outputs[0];
  const auto first = extents_of(a);
  const auto second = extents_of(b);
  const bool floats = is_real(a) && is_real(b) && is_real(out);
  const bool bytes =
      affine(a) && affine(b) && affine(out) && a.dtype == out.dtype && b.dtype == out.dtype;
  if (!first || !second || (!floats && !bytes)) return nullptr;
  const Pair pair{{place_of_input(task, 0), place_of_input(task, 1)}, {*first, *second}};
  return make_by(kPairs, op.kind == ElementwiseKind::sum ? ElementwiseKind::add : op.kind, task,
                 pair);
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
