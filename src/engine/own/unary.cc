// Functions of one tensor, element by element.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/own/own.h"
#include "engine/own/quantized.h"
#include "engine/own/rows.h"
#include "engine/threads.h"

namespace fleetfit::engine::own {
namespace {

using graph::UnaryKind;

template <class Row>
KernelPtr by_rows(const Task& task, const char* name, std::int64_t cost, Row row) {
  const std::int64_t count = graph::elements(task.inputs[0].shape);
  return function_kernel(task, name, [=](const Memory& memory) {
    parallel(count, grain_of(cost),
             [&](std::int64_t begin, std::int64_t end) { row(memory, begin, end - begin); });
  });
}

/// The whole number at or next to a float towards zero; the nearest that fits if it is out of
/// range; 0 for NaN.
template <class To>
To truncated(double value) {
  constexpr double kAbove =
      2.0 * static_cast<double>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
  if (std::isnan(value)) return 0;
  if (value >= kAbove) return std::numeric_limits<To>::max();
  if (value <= static_cast<double>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

struct Truth {
  std::uint8_t byte;
};

template <class To, class From>
To convert(From from) {
  if constexpr (std::is_same_v<From, Truth>) {
    return convert<To>(static_cast<std::int32_t>(from.byte != 0));
  } else if constexpr (std::is_same_v<To, Truth>) {
    return {static_cast<std::uint8_t>(from != 0)};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return truncated<To>(static_cast<double>(from));
  } else {
    return static_cast<To>(from);
  }
}

template <class Visit>
KernelPtr with_type(DType type, const Visit& visit) {
  switch (type) {
    case DType::f32:
      return visit(float{});
    case DType::f64:
      return visit(double{});
    case DType::i8:
      return visit(std::int8_t{});
    case DType::u8:
      return visit(std::uint8_t{});
    case DType::i32:
      return visit(std::int32_t{});
    case DType::i64:
      return visit(std::int64_t{});
    case DType::boolean:
      return visit(Truth{});
    default:
      return nullptr;
  }
}

KernelPtr negate_truth(const Task& task) {
  return by_rows(task, "not", 1, [](const Memory& memory, std::int64_t first, std::int64_t count) {
    const auto* x = memory.in<std::uint8_t>() + first;
    auto* out = memory.out<std::uint8_t>() + first;
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] == 0 ? 1 : 0;
  });
}

KernelPtr make_activate(const Task& task, const graph::Activate& op) {
  if (!all_real(task)) return nullptr;
  const graph::Activation first = op.function;
  const graph::Activation then = task.node.activation;
  return by_rows(task, "activate", 4,
                 [=](const Memory& memory, std::int64_t begin, std::int64_t count) {
                   float* out = memory.out<float>() + begin;
                   activate_row(first, memory.in<float>() + begin, out, count);
                   if (then) activate_row(then, out, out, count);
                 });
}

KernelPtr make_unary(const Task& task, const graph::Unary& op) {
  if (op.kind == UnaryKind::logical_not && task.inputs[0].dtype == DType::boolean) {
    return task.node.activation ? nullptr : negate_truth(task);
  }
  if (!all_real(task)) return nullptr;
  const UnaryKind kind = op.kind;
  const graph::Activation then = task.node.activation;
  return by_rows(task, "unary", 4,
                 [=](const Memory& memory, std::int64_t begin, std::int64_t count) {
                   float* out = memory.out<float>() + begin;
                   unary_row(kind, memory.in<float>() + begin, out, count);
                   if (then) activate_row(then, out, out, count);
                 });
}

KernelPtr make_cast(const Task& task, const graph::Cast&) {
  if (task.node.activation || task.inputs[0].quantization || task.outputs[0].quantization) {
    return nullptr;
  }
  return with_type(task.inputs[0].dtype, [&]<class From>(From) {
    return with_type(task.outputs[0].dtype, [&]<class To>(To) {
      return by_rows(task, "cast", 2,
                     [](const Memory& memory, std::int64_t begin, std::int64_t count) {
                       const From* x = memory.in<From>() + begin;
                       To* out = memory.out<To>() + begin;
                       for (std::int64_t i = 0; i < count; ++i) out[i] = convert<To>(x[i]);
                     });
    });
  });
}

}  // namespace

std::span<const OwnKernels> unary_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Activate, make_activate>({.stored = make_quantized_table, .activates = true}),
      kernels<graph::Unary, make_unary>({.stored = make_quantized_table, .activates = true}),
      kernels<graph::Cast, make_cast>({.on_reals = false}),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
