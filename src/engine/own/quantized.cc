// Between real numbers and the whole ones that stand for them.
#include "engine/own/own.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/own/broadcast.h"
#include "fleetfit/graph/evaluate.h"

namespace fleetfit::engine::own {
namespace {

using graph::ElementwiseKind;

/// Scales given as operands: one for all elements, or one for each index along an axis.
struct Scaling {
  std::vector<Scale> scales;
  std::int64_t run = 0;  ///< neighbours that share a scale

  const Scale& of_run(std::int64_t index) const {
    return scales[static_cast<std::size_t>(index % std::ssize(scales))];
  }
};

std::optional<std::vector<std::int32_t>> zero_points_of(const Task& task, DType stored,
                                                        std::size_t count) {
  if (!has_input(task, 2)) return std::vector<std::int32_t>(count, 0);
  const Operand& given = task.inputs[2];
  if (!given.constant || given.dtype != stored) return std::nullopt;
  std::vector<std::int32_t> points;
  for (const std::byte byte : given.constant->bytes()) {
    const auto bits = std::to_integer<std::uint8_t>(byte);
    points.push_back(stored == DType::i8 ? static_cast<std::int8_t>(bits) : bits);
  }
  return points.size() == count ? std::optional(points) : std::nullopt;
}

std::optional<Scaling> scaling_of(const Task& task, DType stored, std::int64_t axis) {
  if (stored != DType::i8 && stored != DType::u8) return std::nullopt;
  const Operand& given = task.inputs[1];
  if (!given.constant || given.dtype != DType::f32) return std::nullopt;
  const auto factors = given.constant->as<float>();
  const auto points = zero_points_of(task, stored, factors.size());
  if (!points || factors.empty()) return std::nullopt;
  Scaling scaling;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    scaling.scales.push_back({factors[i], (*points)[i], stored == DType::i8});
  }
  const Shape& shape = task.inputs[0].shape;
  if (factors.size() == 1) {
    scaling.run = graph::elements(shape);
    return scaling;
  }
  const auto position = resolve_axis(axis, shape.size());
  if (!position || shape[*position] != std::ssize(factors)) return std::nullopt;
  scaling.run = along(shape, *position).inner;
  return scaling;
}

/// Calls row(scale, first, count) for pieces of elements that share a scale.
template <class Row>
void for_each_piece(const Scaling& scaling, std::int64_t elements, const Row& row) {
  if (scaling.scales.size() == 1) {
    parallel(elements, grain_of(1), [&](std::int64_t begin, std::int64_t end) {
      row(scaling.scales[0], begin, end - begin);
    });
    return;
  }
  parallel_each(elements / scaling.run, scaling.run,
                [&](std::int64_t i) { row(scaling.of_run(i), i * scaling.run, scaling.run); });
}

/// The part of a panel that an operand gives, as floats in `buffer`, of kPanel elements.
FloatRows real_rows(const Scale& scale, const RowsOf<std::uint8_t>& stored, const Extents& extents,
                    float* buffer) {
  if (stored.step == 1 && (stored.row_step == extents.count || extents.rows == 1)) {
    dequantize_row(scale, stored.data, buffer, extents.rows * extents.count);
    return {buffer, 1, extents.count};
  }
  if (stored.step == 1 && stored.row_step == 0) {
    dequantize_row(scale, stored.data, buffer, extents.count);
    return {buffer, 1, 0};
  }
  const std::int64_t columns = stored.step == 0 ? 1 : extents.count;
  for (std::int64_t row = 0; row < extents.rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i) {
      dequantize_row(scale, stored.data + row * stored.row_step + i * stored.step,
                     buffer + row * columns + i, 1);
    }
  }
  return {buffer, stored.step == 0 ? 0 : 1, columns};
}

bool keeps_places(const graph::Operator& op) {
  return std::holds_alternative<graph::Activate>(op) || std::holds_alternative<graph::Unary>(op);
}

/// What the interpreter makes of every number that a byte can hold.
std::optional<ByteTable> table_of(const Task& task) {
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  const graph::Value all{task.inputs[0].dtype,
                         {std::ssize(bytes)},
                         graph::TensorData::copy(bytes),
                         task.inputs[0].quantization};
  const graph::Value* const operand = &all;
  const std::optional<graph::Quantization> result = task.outputs[0].quantization;
  const auto values = graph::evaluate(task.node, {&operand, 1}, {&result, 1});
  if (!values || values->front().data.size_bytes() != bytes.size()) return std::nullopt;
  ByteTable table{};
  std::ranges::copy(values->front().data.as<std::uint8_t>(), table.begin());
  return table;
}

KernelPtr make_requantize(const Task& task, const graph::Requantize&) {
  const Operand& from = task.inputs[0];
  const Operand& to = task.outputs[0];
  if (task.node.activation) return nullptr;
  const std::int64_t elements = graph::elements(from.shape);
  if (is_real(from) && is_quantized(to)) {
    return kernel_by_rows(
        task, "quantize", elements, 1,
        [scale = scale_of(to)](const Memory& memory, std::int64_t first, std::int64_t count) {
          quantize_row(scale, memory.in<float>() + first, memory.out<std::uint8_t>() + first,
                       count);
        });
  }
  if (is_quantized(from) && is_real(to)) {
    return kernel_by_rows(
        task, "dequantize", elements, 1,
        [scale = scale_of(from)](const Memory& memory, std::int64_t first, std::int64_t count) {
          dequantize_row(scale, memory.in<std::uint8_t>() + first, memory.out<float>() + first,
                         count);
        });
  }
  if (!is_quantized(from) || !is_quantized(to)) return nullptr;
  return kernel_by_rows(task, "requantize", elements, 1,
                        [before = scale_of(from), after = scale_of(to)](
                            const Memory& memory, std::int64_t first, std::int64_t count) {
                          requantize_row(before, memory.in<std::uint8_t>() + first, after,
                                         memory.out<std::uint8_t>() + first, count);
                        });
}

KernelPtr make_quantize_linear(const Task& task, const graph::QuantizeLinear& op) {
  const auto scaling = scaling_of(task, task.outputs[0].dtype, op.axis);
  if (!scaling || !is_real(task.inputs[0]) || task.node.activation) return nullptr;
  const std::int64_t count = graph::elements(task.inputs[0].shape);
  return function_kernel(task, "quantize", [=, scaling = *scaling](const Memory& memory) {
    for_each_piece(scaling, count, [&](const Scale& scale, std::int64_t first, std::int64_t n) {
      quantize_row(scale, memory.in<float>() + first, memory.out<std::uint8_t>() + first, n);
    });
  });
}

KernelPtr make_dequantize_linear(const Task& task, const graph::DequantizeLinear& op) {
  const auto scaling = scaling_of(task, task.inputs[0].dtype, op.axis);
  if (!scaling || !is_real(task.outputs[0]) || task.node.activation) return nullptr;
  const std::int64_t count = graph::elements(task.inputs[0].shape);
  return function_kernel(task, "dequantize", [=, scaling = *scaling](const Memory& memory) {
    for_each_piece(scaling, count, [&](const Scale& scale, std::int64_t first, std::int64_t n) {
      dequantize_row(scale, memory.in<std::uint8_t>() + first, memory.out<float>() + first, n);
    });
  });
}

}  // namespace

Scale scale_of(const Operand& operand) {
  return {operand.quantization->scales[0], operand.quantization->zero_points[0],
          operand.dtype == DType::i8};
}

bool touches_quantized(const Task& task) {
  const auto has_scale = [](const Operand& operand) {
    return operand.present && operand.quantization.has_value();
  };
  return std::ranges::any_of(task.inputs, has_scale) ||
         std::ranges::any_of(task.outputs, has_scale);
}

KernelPtr make_quantized_elementwise(const Task& task, const graph::Elementwise& op) {
  const bool fits = std::ranges::all_of(task.inputs, is_quantized) &&
                    is_quantized(task.outputs[0]) && task.inputs.size() >= 2;
  if (!fits || !has_fast_combination(op.kind)) return nullptr;
  std::vector<Shape> shapes;
  std::vector<Scale> scales;
  for (const Operand& operand : task.inputs) {
    shapes.push_back(operand.shape);
    scales.push_back(scale_of(operand));
  }
  const auto broadcast = Broadcast::make(shapes, task.outputs[0].shape);
  if (!broadcast) return nullptr;
  const ElementwiseKind kind = op.kind;
  const graph::Activation activation = task.node.activation;
  const Scale result = scale_of(task.outputs[0]);
  return function_kernel(
      task, "combine quantized",
      [=, plan = *broadcast, scales = std::move(scales)](const Memory& memory) {
        plan.for_each_panel([&](const Broadcast::Panel& at) {
          float left[Broadcast::kPanel];
          float right[Broadcast::kPanel];
          const auto operand = [&](std::size_t i) {
            return real_rows(scales[i], plan.rows(memory.in<std::uint8_t>(i), i, at), at.extents,
                             i == 0 ? left : right);
          };
          float sums[Broadcast::kPanel];
          combine_operands(kind, scales.size(), operand, activation, at.extents, sums);
          quantize_row(result, sums, memory.out<std::uint8_t>() + at.out,
                       at.extents.rows * at.extents.count);
        });
      });
}

KernelPtr make_quantized_table(const Task& task) {
  if (!keeps_places(task.node.op) || !is_quantized(task.inputs[0]) ||
      !is_quantized(task.outputs[0])) {
    return nullptr;
  }
  const auto table = table_of(task);
  if (!table) return nullptr;
  return kernel_by_rows(
      task, "table", graph::elements(task.inputs[0].shape), 1,
      [table = *table](const Memory& memory, std::int64_t first, std::int64_t count) {
        look_up(table, memory.in<std::uint8_t>() + first, memory.out<std::uint8_t>() + first,
                count);
      });
}

KernelPtr make_quantized_concat(const Task& task, const graph::Concat& op) {
  const auto axis = resolve_axis(op.axis, task.outputs[0].shape.size());
  if (!axis || !std::ranges::all_of(task.inputs, is_quantized) || !is_quantized(task.outputs[0]) ||
      task.node.activation) {
    return nullptr;
  }
  struct Part {
    Scale scale;
    std::int64_t row = 0;
    std::int64_t to = 0;
  };
  const Along all = along(task.outputs[0].shape, *axis);
  std::vector<Part> parts;
  std::int64_t row = 0;
  for (const Operand& operand : task.inputs) {
    parts.push_back({scale_of(operand), graph::elements(operand.shape) / all.outer, row});
    row += parts.back().row;
  }
  const Scale result = scale_of(task.outputs[0]);
  const std::int64_t outer = all.outer;
  return function_kernel(
      task, "concat, requantize", [=, parts = std::move(parts)](const Memory& memory) {
        parallel_each(outer, row, [&](std::int64_t i) {
          for (std::size_t p = 0; p < parts.size(); ++p) {
            requantize_row(parts[p].scale, memory.in<std::uint8_t>(p) + i * parts[p].row, result,
                           memory.out<std::uint8_t>() + i * row + parts[p].to, parts[p].row);
          }
        });
      });
}

std::span<const OwnKernels> quantized_kernels() {
  static constexpr std::array kEntries{
      OwnKernels{.type = graph::kTypeOf<graph::Requantize>,
                 .stored = make_of<graph::Requantize, make_requantize>},
      kernels<graph::QuantizeLinear, make_quantize_linear>({.takes_all = true}),
      kernels<graph::DequantizeLinear, make_dequantize_linear>({.takes_all = true}),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
