// Tensors combined element by element, with numpy's broadcasting.
#include <array>
#include <cstring>
#include <type_traits>

#include "engine/own/broadcast.h"
#include "engine/own/own.h"
#include "engine/own/quantized.h"
#include "engine/own/rows.h"

namespace fleetfit::engine::own {
namespace {

using graph::ElementwiseKind;

std::vector<Shape> shapes_of(const std::vector<Operand>& operands) {
  std::vector<Shape> shapes;
  for (const Operand& operand : operands) shapes.push_back(operand.shape);
  return shapes;
}

bool compares(ElementwiseKind kind) {
  return kind >= ElementwiseKind::equal && kind <= ElementwiseKind::logical_xor;
}

bool all_of_type(const Task& task, DType type) {
  return std::ranges::all_of(task.inputs, [&](const Operand& operand) {
    return operand.present && operand.dtype == type && !operand.quantization;
  });
}

// --- Floats.

KernelPtr combine_floats(const Task& task, ElementwiseKind kind, const Broadcast& broadcast) {
  const std::size_t operands = task.inputs.size();
  const graph::Activation activation = task.node.activation;
  return function_kernel(task, "combine", [=](const Memory& memory) {
    broadcast.for_each_panel(
        [&](const Extents& extents, const Broadcast::Offsets& at, std::int64_t to) {
          float* out = memory.out<float>() + to;
          const auto operand = [&](std::size_t i) {
            return broadcast.rows(memory.in<float>(i), i, at);
          };
          combine_rows(kind, operand(0), operand(1), out, extents);
          for (std::size_t i = 2; i < operands; ++i) {
            combine_rows(kind, {out, 1, extents.count}, operand(i), out, extents);
          }
          const std::int64_t count = extents.rows * extents.count;
          if (kind == ElementwiseKind::mean) {
            scale_row(out, 1.0F / static_cast<float>(operands), out, count);
          }
          if (activation) activate_row(activation, out, out, count);
        });
  });
}

KernelPtr compare_floats(const Task& task, ElementwiseKind kind, const Broadcast& broadcast) {
  if (task.outputs[0].dtype != DType::boolean || task.node.activation) return nullptr;
  return function_kernel(task, "compare", [=](const Memory& memory) {
    broadcast.for_each_panel(
        [&](const Extents& extents, const Broadcast::Offsets& at, std::int64_t to) {
          compare_rows(kind, broadcast.rows(memory.in<float>(0), 0, at),
                       broadcast.rows(memory.in<float>(1), 1, at), memory.out<std::uint8_t>() + to,
                       extents);
        });
  });
}

// --- Whole numbers and truth values, mostly of shapes.

/// Wraps around, as only unsigned arithmetic may. `b` is not 0 where it divides.
std::int64_t combine(ElementwiseKind kind, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sum:
      return static_cast<std::int64_t>(x + y);
    case ElementwiseKind::sub:
      return static_cast<std::int64_t>(x - y);
    case ElementwiseKind::mul:
      return static_cast<std::int64_t>(x * y);
    case ElementwiseKind::div:
      return b == -1 ? static_cast<std::int64_t>(0 - x) : a / b;
    case ElementwiseKind::mod: {
      const std::int64_t rest = b == -1 ? 0 : a % b;
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case ElementwiseKind::min:
      return std::min(a, b);
    case ElementwiseKind::max:
      return std::max(a, b);
    case ElementwiseKind::equal:
      return a == b;
    case ElementwiseKind::greater:
      return a > b;
    case ElementwiseKind::less:
      return a < b;
    case ElementwiseKind::greater_or_equal:
      return a >= b;
    case ElementwiseKind::less_or_equal:
      return a <= b;
    case ElementwiseKind::logical_and:
      return a != 0 && b != 0;
    case ElementwiseKind::logical_or:
      return a != 0 || b != 0;
    case ElementwiseKind::logical_xor:
      return (a != 0) != (b != 0);
    case ElementwiseKind::squared_difference:
      return static_cast<std::int64_t>((x - y) * (x - y));
    case ElementwiseKind::pow:
    case ElementwiseKind::mean:
      break;
  }
  return 0;
}

template <class In, class Out>
void combine_panel(ElementwiseKind kind, RowsOf<In> a, RowsOf<In> b, Out* out,
                   const Extents& extents) {
  for (std::int64_t row = 0; row < extents.rows; ++row) {
    for (std::int64_t i = 0; i < extents.count; ++i) {
      *out++ = static_cast<Out>(combine(kind, a.data[i * a.step], b.data[i * b.step]));
    }
    a.data += a.row_step;
    b.data += b.row_step;
  }
}

template <class In, class Out>
KernelPtr combine_integers(const Task& task, ElementwiseKind kind, const Broadcast& broadcast) {
  const bool divides = kind == ElementwiseKind::div || kind == ElementwiseKind::mod;
  const std::int64_t divisors = graph::elements(task.inputs[1].shape);
  return function_kernel(task, "combine integers", [=](const Memory& memory) -> Status {
    const In* right = memory.in<In>(1);
    if (divides && std::find(right, right + divisors, In{0}) != right + divisors) {
      return fail(ErrorCode::invalid_input, "division by zero");
    }
    broadcast.for_each_panel(
        [&](const Extents& extents, const Broadcast::Offsets& at, std::int64_t to) {
          combine_panel(kind, broadcast.rows(memory.in<In>(0), 0, at), broadcast.rows(right, 1, at),
                        memory.out<Out>() + to, extents);
        });
    return {};
  });
}

template <class In>
KernelPtr combine_integers_of(const Task& task, ElementwiseKind kind, const Broadcast& broadcast) {
  const DType result = task.outputs[0].dtype;
  if (compares(kind)) {
    if (result != DType::boolean) return nullptr;
    return combine_integers<In, std::uint8_t>(task, kind, broadcast);
  }
  if (result != task.inputs[0].dtype) return nullptr;
  return combine_integers<In, In>(task, kind, broadcast);
}

KernelPtr combine_whole(const Task& task, ElementwiseKind kind, const Broadcast& broadcast) {
  const bool has_loop = kind != ElementwiseKind::pow && kind != ElementwiseKind::mean;
  if (!has_loop || task.inputs.size() != 2 || task.node.activation) return nullptr;
  if (all_of_type(task, DType::i64)) {
    return combine_integers_of<std::int64_t>(task, kind, broadcast);
  }
  if (all_of_type(task, DType::i32)) {
    return combine_integers_of<std::int32_t>(task, kind, broadcast);
  }
  if (all_of_type(task, DType::boolean) && compares(kind)) {
    return combine_integers_of<std::uint8_t>(task, kind, broadcast);
  }
  return nullptr;
}

// --- Choosing between two.

template <class T>
KernelPtr choose(const Task& task, const Broadcast& broadcast) {
  return function_kernel(task, "where", [=](const Memory& memory) {
    broadcast.for_each_panel(
        [&](const Extents& extents, const Broadcast::Offsets& at, std::int64_t to) {
          auto condition = broadcast.rows(memory.in<std::uint8_t>(0), 0, at);
          auto yes = broadcast.rows(memory.in<T>(1), 1, at);
          auto no = broadcast.rows(memory.in<T>(2), 2, at);
          T* out = memory.out<T>() + to;
          for (std::int64_t row = 0; row < extents.rows; ++row) {
            for (std::int64_t i = 0; i < extents.count; ++i) {
              *out++ = condition.data[i * condition.step] != 0 ? yes.data[i * yes.step]
                                                               : no.data[i * no.step];
            }
            condition.data += condition.row_step;
            yes.data += yes.row_step;
            no.data += no.row_step;
          }
        });
  });
}

KernelPtr make_elementwise(const Task& task, const graph::Elementwise& op) {
  if (task.inputs.size() < 2) return nullptr;
  const auto broadcast = Broadcast::make(shapes_of(task.inputs), task.outputs[0].shape);
  if (!broadcast) return nullptr;
  if (!all_of_type(task, DType::f32)) return combine_whole(task, op.kind, *broadcast);
  if (compares(op.kind)) {
    return task.inputs.size() == 2 ? compare_floats(task, op.kind, *broadcast) : nullptr;
  }
  if (!is_real(task.outputs[0]) || !has_fast_combination(op.kind)) return nullptr;
  return combine_floats(task, op.kind, *broadcast);
}

KernelPtr make_where(const Task& task, const graph::Where&) {
  if (task.inputs.size() != 3 || task.inputs[0].dtype != DType::boolean || task.node.activation ||
      task.inputs[1].dtype != task.inputs[2].dtype || task.inputs[1].quantization ||
      task.inputs[2].quantization || task.outputs[0].quantization) {
    return nullptr;
  }
  const auto broadcast = Broadcast::make(shapes_of(task.inputs), task.outputs[0].shape);
  if (!broadcast) return nullptr;
  switch (graph::size_of(task.inputs[1].dtype)) {
    case 1:
      return choose<std::uint8_t>(task, *broadcast);
    case 4:
      return choose<std::uint32_t>(task, *broadcast);
    case 8:
      return choose<std::uint64_t>(task, *broadcast);
    default:
      return nullptr;
  }
}

KernelPtr make_prelu(const Task& task, const graph::PRelu&) {
  if (!all_real(task)) return nullptr;
  const auto broadcast = Broadcast::make(shapes_of(task.inputs), task.outputs[0].shape);
  if (!broadcast) return nullptr;
  return function_kernel(task, "prelu", [=, plan = *broadcast](const Memory& memory) {
    plan.for_each_panel([&](const Extents& extents, const Broadcast::Offsets& at, std::int64_t to) {
      slope_rows(plan.rows(memory.in<float>(0), 0, at), plan.rows(memory.in<float>(1), 1, at),
                 memory.out<float>() + to, extents);
    });
  });
}

}  // namespace

std::span<const OwnKernels> elementwise_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Elementwise, make_elementwise>(
          {.stored = make_of<graph::Elementwise, make_quantized_elementwise>, .activates = true}),
      kernels<graph::Where, make_where>(),
      kernels<graph::PRelu, make_prelu>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
