// Tensors element by element: combined with numpy's broadcasting, and functions of one.
#include <array>
#include <cstring>
#include <type_traits>

#include "engine/own/broadcast.h"
#include "engine/own/own.h"
#include "fleetfit/graph/arithmetic.h"

namespace fleetfit::engine::own {
namespace {

using graph::ElementwiseKind;
using graph::UnaryKind;

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
    broadcast.for_each_panel([&](const Broadcast::Panel& at) {
      const auto operand = [&](std::size_t i) {
        return broadcast.rows(memory.in<float>(i), i, at);
      };
      combine_operands(kind, operands, operand, activation, at.extents,
                       memory.out<float>() + at.out);
    });
  });
}

KernelPtr compare_floats(const Task& task, ElementwiseKind kind, const Broadcast& broadcast) {
  if (task.outputs[0].dtype != DType::boolean || task.node.activation) return nullptr;
  return function_kernel(task, "compare", [=](const Memory& memory) {
    broadcast.for_each_panel([&](const Broadcast::Panel& at) {
      compare_rows(kind, broadcast.rows(memory.in<float>(0), 0, at),
                   broadcast.rows(memory.in<float>(1), 1, at), memory.out<std::uint8_t>() + at.out,
                   at.extents);
    });
  });
}

// --- Whole numbers and truth values, mostly of shapes.

template <class In, class Out>
void combine_panel(ElementwiseKind kind, RowsOf<In> a, RowsOf<In> b, Out* out,
                   const Extents& extents) {
  for (std::int64_t row = 0; row < extents.rows; ++row) {
    for (std::int64_t i = 0; i < extents.count; ++i) {
      *out++ = static_cast<Out>(
          graph::interpreter::combine<std::int64_t>(kind, a.data[i * a.step], b.data[i * b.step]));
    }
    a.data += a.row_step;
    b.data += b.row_step;
  }
}

template <class In, class Out>
KernelPtr combine_integers(const Task& task, ElementwiseKind kind, const Broadcast& broadcast) {
  const bool divides = graph::interpreter::divides(kind);
  const std::int64_t divisors = graph::elements(task.inputs[1].shape);
  return function_kernel(task, "combine integers", [=](const Memory& memory) -> Status {
    const In* right = memory.in<In>(1);
    if (divides && std::find(right, right + divisors, In{0}) != right + divisors) {
      return fail(ErrorCode::invalid_input, "division by zero");
    }
    broadcast.for_each_panel([&](const Broadcast::Panel& at) {
      combine_panel(kind, broadcast.rows(memory.in<In>(0), 0, at), broadcast.rows(right, 1, at),
                    memory.out<Out>() + at.out, at.extents);
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
    broadcast.for_each_panel([&](const Broadcast::Panel& at) {
      auto condition = broadcast.rows(memory.in<std::uint8_t>(0), 0, at);
      auto yes = broadcast.rows(memory.in<T>(1), 1, at);
      auto no = broadcast.rows(memory.in<T>(2), 2, at);
      T* out = memory.out<T>() + at.out;
      for (std::int64_t row = 0; row < at.extents.rows; ++row) {
        for (std::int64_t i = 0; i < at.extents.count; ++i) {
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
  return with_word(graph::size_of(task.inputs[1].dtype),
                   [&]<class T>(T) { return choose<T>(task, *broadcast); });
}

KernelPtr make_prelu(const Task& task, const graph::PRelu&) {
  if (!all_real(task)) return nullptr;
  const auto broadcast = Broadcast::make(shapes_of(task.inputs), task.outputs[0].shape);
  if (!broadcast) return nullptr;
  return function_kernel(task, "prelu", [=, plan = *broadcast](const Memory& memory) {
    plan.for_each_panel([&](const Broadcast::Panel& at) {
      slope_rows(plan.rows(memory.in<float>(0), 0, at), plan.rows(memory.in<float>(1), 1, at),
                 memory.out<float>() + at.out, at.extents);
    });
  });
}

// --- Functions of one tensor.

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
      return visit(graph::interpreter::Truth{});
    default:
      return nullptr;
  }
}

KernelPtr negate_truth(const Task& task) {
  return kernel_by_rows(task, "not", graph::elements(task.inputs[0].shape), 1,
                        [](const Memory& memory, std::int64_t first, std::int64_t count) {
                          const auto* x = memory.in<std::uint8_t>() + first;
                          auto* out = memory.out<std::uint8_t>() + first;
                          for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] == 0 ? 1 : 0;
                        });
}

KernelPtr make_activate(const Task& task, const graph::Activate& op) {
  if (!all_real(task)) return nullptr;
  const graph::Activation first = op.function;
  const graph::Activation then = task.node.activation;
  return kernel_by_rows(task, "activate", graph::elements(task.inputs[0].shape), 4,
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
  return kernel_by_rows(task, "unary", graph::elements(task.inputs[0].shape), 4,
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
      return kernel_by_rows(task, "cast", graph::elements(task.inputs[0].shape), 2,
                            [](const Memory& memory, std::int64_t begin, std::int64_t count) {
                              const From* x = memory.in<From>() + begin;
                              To* out = memory.out<To>() + begin;
                              for (std::int64_t i = 0; i < count; ++i)
                                out[i] = graph::interpreter::convert_plain<To>(x[i]);
                            });
    });
  });
}

}  // namespace

std::span<const OwnKernels> elementwise_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Activate, make_activate>({.stored = make_quantized_table, .activates = true}),
      kernels<graph::Unary, make_unary>({.stored = make_quantized_table, .activates = true}),
      kernels<graph::Cast, make_cast>({.on_reals = false}),
      kernels<graph::Elementwise, make_elementwise>(
          {.stored = make_of<graph::Elementwise, make_quantized_elementwise>, .activates = true}),
      kernels<graph::Where, make_where>(),
      kernels<graph::PRelu, make_prelu>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
