// Products of matrices, and attention.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/own/broadcast.h"
#include "engine/own/own.h"
#include "engine/own/product.h"

namespace fleetfit::engine::own {
namespace {

/// The right-hand side of a product: packed beforehand if it is known, else when it runs.
class RightSide {
 public:
  /// `steps` has no data.
  RightSide(const Operand& operand, const MatrixView& steps, std::int64_t depth,
            std::int64_t columns)
      : steps_(steps), depth_(depth), columns_(columns) {
    if (!operand.constant) return;
    packed_.resize(static_cast<std::size_t>(packed_floats(depth, columns)));
    pack_to(operand.constant->as<float>().data(), packed_.data());
  }

  std::size_t scratch_bytes() const {
    return packed_.empty() ? bytes_of_floats(packed_floats(depth_, columns_)) : 0;
  }

  std::size_t held_bytes() const { return packed_.size() * sizeof(float); }

  const float* packed(const float* data, std::byte* scratch) const {
    if (!packed_.empty()) return packed_.data();
    auto* target = reinterpret_cast<float*>(scratch);
    pack_to(data, target);
    return target;
  }

 private:
  void pack_to(const float* data, float* target) const {
    pack({data, steps_.row_step, steps_.column_step}, depth_, columns_, target);
  }

  MatrixView steps_;
  std::int64_t depth_;
  std::int64_t columns_;
  std::vector<float> packed_;
};

MatrixView steps_of(std::int64_t columns, bool transposed, std::int64_t rows) {
  return transposed ? MatrixView{nullptr, 1, rows} : MatrixView{nullptr, columns, 1};
}

/// out += beta * c, with c repeated to the shape of out.
void add_broadcast(const Broadcast& plan, float beta, const float* c, float* out) {
  plan.for_each_panel([&](const Broadcast::Panel& at) {
    auto rows = plan.rows(c, 0, at);
    float* sums = out + at.out;
    for (std::int64_t row = 0; row < at.extents.rows; ++row) {
      for (std::int64_t i = 0; i < at.extents.count; ++i)
        *sums++ += beta * rows.data[i * rows.step];
      rows.data += rows.row_step;
    }
  });
}

/// Numbers of a tensor's matrices in the order in which the result's matrices read them.
Ints matrix_numbers(const Shape& leading, const Shape& result) {
  const Ints strides = strides_of(leading);
  const Ints of_result = strides_of(result);
  const std::size_t missing = result.size() - leading.size();
  Ints numbers(static_cast<std::size_t>(graph::elements(result)), 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (std::size_t axis = 0; axis < leading.size(); ++axis) {
      if (leading[axis] == 1) continue;
      const auto at = static_cast<std::int64_t>(i) / of_result[axis + missing];
      numbers[i] += at % result[axis + missing] * strides[axis];
    }
  }
  return numbers;
}

/// A stack of matrices as the product reads them.
struct Stack {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  MatrixView steps;
  Ints numbers;

  const float* matrix(const float* data, std::size_t i) const {
    return data + numbers[i] * rows * columns;
  }
};

Stack stack_of(Shape shape, bool transposed, const Shape& leading) {
  Stack stack;
  const std::int64_t columns = shape.back();
  const std::int64_t rows = shape[shape.size() - 2];
  shape.resize(shape.size() - 2);
  stack.numbers = matrix_numbers(shape, leading);
  stack.rows = transposed ? columns : rows;
  stack.columns = transposed ? rows : columns;
  stack.steps = transposed ? MatrixView{nullptr, 1, columns} : MatrixView{nullptr, columns, 1};
  return stack;
}

KernelPtr make_gemm(const Task& task, const graph::Gemm& op) {
  if (!all_real(task)) return nullptr;
  const Shape& b = task.inputs[1].shape;
  const std::int64_t depth = op.trans_b ? b[1] : b[0];
  const std::int64_t columns = op.trans_b ? b[0] : b[1];
  const std::int64_t rows = graph::elements(task.inputs[0].shape) / depth;
  std::optional<Broadcast> addend;
  if (has_input(task, 2)) {
    addend = Broadcast::make({task.inputs[2].shape}, task.outputs[0].shape);
    if (!addend) return nullptr;
  }
  const MatrixView left = steps_of(depth, op.trans_a, rows);
  RightSide right(task.inputs[1], steps_of(columns, op.trans_b, depth), depth, columns);
  const std::size_t scratch = right.scratch_bytes();
  const std::size_t held = right.held_bytes();
  return function_kernel(
      task, "gemm",
      [=, right = std::move(right), alpha = op.alpha, beta = op.beta](const Memory& memory) {
        multiply({.rows = rows, .depth = depth, .columns = columns, .alpha = alpha},
                 {memory.in<float>(0), left.row_step, left.column_step},
                 right.packed(memory.in<float>(1), memory.scratch), memory.out<float>(), columns);
        if (addend) add_broadcast(*addend, beta, memory.in<float>(2), memory.out<float>());
      },
      scratch, held);
}

KernelPtr make_matmul(const Task& task, const graph::MatMul& op) {
  if (!all_real(task)) return nullptr;
  Shape a = task.inputs[0].shape;
  Shape b = task.inputs[1].shape;
  Shape leading = task.outputs[0].shape;
  if (b.size() == 1) {
    b.push_back(1);
  } else {
    leading.pop_back();
  }
  if (a.size() == 1) {
    a.insert(a.begin(), 1);
  } else {
    leading.pop_back();
  }
  const Stack left = stack_of(a, op.trans_a, leading);
  const Stack right = stack_of(b, op.trans_b, leading);
  const Product product{.rows = left.rows, .depth = left.columns, .columns = right.columns};
  const std::int64_t packed = packed_floats(product.depth, product.columns);
  const std::int64_t matrices =
      graph::elements(b) / std::max<std::int64_t>(1, right.rows * right.columns);
  return function_kernel(
      task, "matmul",
      [=](const Memory& memory) {
        auto* panels = reinterpret_cast<float*>(memory.scratch);
        parallel_each(matrices, kWorthAThread, [&](std::int64_t i) {
          pack({memory.in<float>(1) + i * right.rows * right.columns, right.steps.row_step,
                right.steps.column_step},
               product.depth, product.columns, panels + i * packed);
        });
        parallel_each(std::ssize(left.numbers), kWorthAThread, [&](std::int64_t i) {
          const auto n = static_cast<std::size_t>(i);
          multiply(
              product,
              {left.matrix(memory.in<float>(0), n), left.steps.row_step, left.steps.column_step},
              panels + right.numbers[n] * packed,
              memory.out<float>() + i * product.rows * product.columns, product.columns);
        });
      },
      bytes_of_floats(packed * matrices));
}

/// Extents of an attention, and what lies where in scratch memory.
struct Attention {
  std::int64_t batch = 1;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;  ///< of all heads together
  std::int64_t heads = 1;
  std::int64_t slots = 1;  ///< threads that may work at a time

  std::int64_t head_width() const { return width / heads; }
  std::int64_t packed_keys() const { return packed_floats(head_width(), keys); }
  std::int64_t packed_values() const { return packed_floats(keys, head_width()); }
  std::int64_t slot_floats() const { return packed_keys() + packed_values() + queries * keys; }

  /// softmax(q k^T / sqrt(d)) v of one head.
  void attend(const float* q, const float* k, const float* v, float* out, float* slot) const {
    const std::int64_t d = head_width();
    float* values = slot + packed_keys();
    float* scores = values + packed_values();
    pack({k, 1, width}, d, keys, slot);
    pack({v, width, 1}, keys, d, values);
    multiply({.rows = queries,
              .depth = d,
              .columns = keys,
              .alpha = 1.0F / std::sqrt(static_cast<float>(d))},
             {q, width, 1}, slot, scores, keys);
    for (std::int64_t i = 0; i < queries; ++i) {
      float* row = scores + i * keys;
      const float sum = exponentials_of_row(row, max_of_row(row, keys), row, keys);
      scale_row(row, 1.0F / sum, row, keys);
    }
    multiply({.rows = queries, .depth = keys, .columns = d}, {scores, keys, 1}, values, out, width);
  }

  void attend_all(const float* q, const float* k, const float* v, float* out, float* room) const {
    const std::int64_t count = batch * heads;
    parallel_each(slots, kWorthAThread, [&](std::int64_t slot) {
      for (std::int64_t i = count * slot / slots; i < count * (slot + 1) / slots; ++i) {
        const std::int64_t n = i / heads;
        const std::int64_t column = i % heads * head_width();
        attend(q + n * queries * width + column, k + n * keys * width + column,
               v + n * keys * width + column, out + n * queries * width + column,
               room + slot * slot_floats());
      }
    });
  }
};

bool projections_fit(const Task& task, std::int64_t width) {
  for (std::size_t i = 0; i < 4; ++i) {
    const Shape& weights = task.inputs[3 + 2 * i].shape;
    if (weights.size() != 2 || graph::elements(task.inputs[4 + 2 * i].shape) != weights[0] ||
        (i < 3 && weights[0] != width)) {
      return false;
    }
  }
  return task.inputs[9].shape[1] == width;
}

KernelPtr make_attention(const Task& task, const graph::MultiHeadAttention& op) {
  if (!all_real(task) || task.inputs.size() != 11) return nullptr;
  const Shape& q = task.inputs[0].shape;
  const std::int64_t width = task.inputs[3].shape[0];
  if (!projections_fit(task, width) ||
      (q.size() == 3 && (task.inputs[1].shape[0] != q[0] || task.inputs[2].shape[0] != q[0]))) {
    return nullptr;
  }
  const Attention attention{.batch = q.size() == 3 ? q[0] : 1,
                            .queries = q[q.size() - 2],
                            .keys = task.inputs[1].shape[q.size() - 2],
                            .width = width,
                            .heads = op.heads,
                            .slots = std::max(1, task.threads)};
  // Projections: rows of features times the transposed weights.
  std::vector<RightSide> weights;
  std::size_t packing = 0;
  std::size_t held = 0;
  for (std::size_t i = 3; i < 11; i += 2) {
    const Shape& shape = task.inputs[i].shape;
    weights.emplace_back(task.inputs[i], MatrixView{nullptr, 1, shape[1]}, shape[1], shape[0]);
    packing = std::max(packing, weights.back().scratch_bytes());
    held += weights.back().held_bytes();
  }
  const std::int64_t query_rows = attention.batch * attention.queries;
  const std::int64_t key_rows = attention.batch * attention.keys;
  const std::size_t query_bytes = bytes_of_floats(query_rows * width);
  const std::size_t key_bytes = bytes_of_floats(key_rows * width);
  const std::size_t room = 2 * query_bytes + 2 * key_bytes;
  const std::size_t scratch =
      room + bytes_of_floats(attention.slots * attention.slot_floats()) + packing;
  std::vector<std::pair<std::int64_t, std::int64_t>> extents;  // depth and columns
  for (std::size_t i = 3; i < 11; i += 2) {
    extents.emplace_back(task.inputs[i].shape[1], task.inputs[i].shape[0]);
  }
  return function_kernel(
      task, "attention",
      [=, weights = std::move(weights)](const Memory& memory) {
        std::byte* packed = memory.scratch + scratch - packing;
        const auto project = [&](std::size_t i, const float* x, std::int64_t rows, float* out) {
          multiply({.rows = rows,
                    .depth = extents[i].first,
                    .columns = extents[i].second,
                    .bias = memory.in<float>(4 + 2 * i)},
                   {x, extents[i].first, 1}, weights[i].packed(memory.in<float>(3 + 2 * i), packed),
                   out, extents[i].second);
        };
        const auto part = [&](std::size_t offset) {
          return reinterpret_cast<float*>(memory.scratch + offset);
        };
        float* queries = part(0);
        float* attended = part(query_bytes);
        float* keys = part(2 * query_bytes);
        float* values = part(2 * query_bytes + key_bytes);
        project(0, memory.in<float>(0), query_rows, queries);
        project(1, memory.in<float>(1), key_rows, keys);
        project(2, memory.in<float>(2), key_rows, values);
        attention.attend_all(queries, keys, values, attended, part(room));
        project(3, attended, query_rows, memory.out<float>());
      },
      scratch, held);
}

}  // namespace

std::span<const OwnKernels> dense_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Gemm, make_gemm>(),
      kernels<graph::MatMul, make_matmul>(),
      kernels<graph::MultiHeadAttention, make_attention>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
