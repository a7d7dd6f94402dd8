#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/evaluate/kernels.h"
#include "graph/evaluate/reals.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

/// A matrix in someone else's memory, row by row.
template <class T>
struct Matrix {
  const T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  const T* row(std::int64_t i) const { return data + i * columns; }
};

/// out += a * b, for each row of a; out has a.rows x b.columns sums.
template <class T, class Sum>
void multiply(const Matrix<T>& a, const Matrix<T>& b, Sum* out) {
  for (std::int64_t i = 0; i < a.rows; ++i, out += b.columns) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const auto factor = static_cast<Sum>(a.row(i)[k]);
      const T* from = b.row(k);
      for (std::int64_t j = 0; j < b.columns; ++j) out[j] += factor * static_cast<Sum>(from[j]);
    }
  }
}

/// out += a * b^T; out has a.rows x b.rows sums.
template <class T, class Sum>
void multiply_transposed(const Matrix<T>& a, const Matrix<T>& b, Sum* out) {
  for (std::int64_t i = 0; i < a.rows; ++i, out += b.rows) {
    for (std::int64_t j = 0; j < b.rows; ++j) {
      Sum sum{};
      const T* left = a.row(i);
      const T* right = b.row(j);
      for (std::int64_t k = 0; k < a.columns; ++k) {
        sum += static_cast<Sum>(left[k]) * static_cast<Sum>(right[k]);
      }
      out[j] += sum;
    }
  }
}

/// The last two dimensions swapped.
Value swapped(const Value& x) {
  Ints perm(x.shape.size());
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return permuted(x, perm);
}

template <class T>
Matrix<T> as_matrix(const T* data, const Shape& shape) {
  return {data, shape[shape.size() - 2], shape.back()};
}

template <class T>
std::vector<double> product(const Value& a, const Value& b, bool trans_b) {
  const Reals<T> left(a);
  const Reals<T> right(b);
  const auto columns = trans_b ? b.shape[0] : b.shape[1];
  std::vector<double> sums(a.shape[0] * columns);
  if (trans_b) {
    multiply_transposed(as_matrix(left.data(), a.shape), as_matrix(right.data(), b.shape),
                        sums.data());
  } else {
    multiply(as_matrix(left.data(), a.shape), as_matrix(right.data(), b.shape), sums.data());
  }
  return sums;
}

/// Products of all pairs of matrices that broadcasting brings together.
struct Batch {
  Shape shape;  ///< the leading extents of the result
  Ints of_a;    ///< number of A's matrix for each of the result's
  Ints of_b;
};

/// Numbers of a tensor's matrices in the order in which the result's read them.
Result<Ints> matrix_numbers(const Shape& leading, const Shape& result) {
  Ints numbers(elements(leading));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  FLEETFIT_ASSIGN(const auto all, broadcast(write(Form{DType::i64, leading}, numbers), result));
  return read<std::int64_t>(all);
}

Shape leading(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

Result<Batch> pair_matrices(const Value& a, const Value& b) {
  FLEETFIT_ASSIGN(const auto shape, graph::broadcast(leading(a.shape), leading(b.shape)));
  auto of_a = matrix_numbers(leading(a.shape), shape);
  auto of_b = matrix_numbers(leading(b.shape), shape);
  if (!of_a || !of_b) return misfit("matrices do not go together");
  return Batch{shape, *std::move(of_a), *std::move(of_b)};
}

template <class T, class Sum, class Numbers>
std::vector<Sum> batched_product(const Value& a, const Value& b, const Batch& batch) {
  const Numbers left(a);
  const Numbers right(b);
  const auto first = as_matrix(left.data(), a.shape);
  const auto second = as_matrix(right.data(), b.shape);
  const auto size = first.rows * second.columns;
  std::vector<Sum> sums(batch.of_a.size() * size);
  for (std::size_t i = 0; i < batch.of_a.size(); ++i) {
    const Matrix<T> one{first.row(batch.of_a[i] * first.rows), first.rows, first.columns};
    const Matrix<T> other{second.row(batch.of_b[i] * second.rows), second.rows, second.columns};
    multiply(one, other, sums.data() + i * size);
  }
  return sums;
}

/// Elements as 64-bit numbers that may wrap around.
class Whole {
 public:
  explicit Whole(const Value& value) : all_(read<std::uint64_t>(value)) {}
  const std::uint64_t* data() const { return all_.data(); }

 private:
  std::vector<std::uint64_t> all_;
};

Value multiply_batch(const Value& a, const Value& b, const Batch& batch, const Form& form) {
  if (!is_float(form.dtype)) {
    return write(form, batched_product<std::uint64_t, std::uint64_t, Whole>(a, b, batch));
  }
  return with_reals(form.dtype, [&]<class T>(T) {
    return write(form, batched_product<T, double, Reals<T>>(a, b, batch));
  });
}

/// x * weights^T + bias for rows of features.
std::vector<double> project(const Value& x, const Value& weights, const Value& bias) {
  const auto rows = elements(x.shape) / std::max<std::int64_t>(x.shape.back(), 1);
  auto sums = product<float>(reshaped(x, {rows, x.shape.back()}), weights, true);
  const auto shift = read<double>(bias);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += shift[i % shift.size()];
  return sums;
}

void softmax(double* row, std::int64_t count) {
  const double highest = *std::max_element(row, row + count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += row[i] = std::exp(row[i] - highest);
  for (std::int64_t i = 0; i < count; ++i) row[i] /= sum;
}

/// Columns [first, first + count) of a matrix.
std::vector<double> columns_of(const Matrix<double>& m, std::int64_t first, std::int64_t count) {
  std::vector<double> part;
  part.reserve(m.rows * count);
  for (std::int64_t i = 0; i < m.rows; ++i) {
    part.insert(part.end(), m.row(i) + first, m.row(i) + first + count);
  }
  return part;
}

struct Projected {
  Matrix<double> q;
  Matrix<double> k;
  Matrix<double> v;
};

/// One head: softmax(q k^T / sqrt(d)) v on its columns.
std::vector<double> attend(const Projected& p, std::int64_t head, std::int64_t width) {
  const auto q = columns_of(p.q, head * width, width);
  const auto k = columns_of(p.k, head * width, width);
  const auto v = columns_of(p.v, head * width, width);
  std::vector<double> scores(p.q.rows * p.k.rows);
  multiply_transposed(Matrix<double>{q.data(), p.q.rows, width},
                      Matrix<double>{k.data(), p.k.rows, width}, scores.data());
  for (auto& score : scores) score /= std::sqrt(static_cast<double>(width));
  for (std::int64_t i = 0; i < p.q.rows; ++i) softmax(scores.data() + i * p.k.rows, p.k.rows);
  std::vector<double> out(p.q.rows * width);
  multiply(Matrix<double>{scores.data(), p.q.rows, p.k.rows},
           Matrix<double>{v.data(), p.v.rows, width}, out.data());
  return out;
}

/// All heads beside each other.
void attend_all(const Projected& p, std::int64_t heads, double* out) {
  const auto width = p.q.columns / heads;
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto part = attend(p, head, width);
    for (std::int64_t i = 0; i < p.q.rows; ++i) {
      std::copy_n(part.data() + i * width, width, out + i * p.q.columns + head * width);
    }
  }
}

Status check_attention(const Call& call) {
  const auto width = call.input(3).shape[0];
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& weights = call.input(3 + 2 * i).shape;
    if (weights.size() != 2 || elements(call.input(4 + 2 * i).shape) != weights[0] ||
        (i < 3 && weights[0] != width)) {
      return misfit("projection {} does not fit the others", i);
    }
  }
  if (call.input(9).shape[1] != width) return misfit("the output projection does not fit");
  const auto rank = call.input(0).shape.size();
  for (std::size_t i = 1; i < 3; ++i) {
    if (rank == 3 && call.input(i).shape[0] != call.input(0).shape[0]) {
      return misfit("operands are of different batch sizes");
    }
  }
  if (call.input(1).shape[rank - 2] == 0) return misfit("there is nothing to attend to");
  return {};
}

}  // namespace

Values run(const Gemm& op, const Call& call) {
  const auto& b = call.input(1);
  const auto depth = op.trans_b ? b.shape[1] : b.shape[0];
  const auto a = op.trans_a ? swapped(call.input(0)) : call.input(0);
  const auto rows = reshaped(a, {elements(a.shape) / depth, depth});
  auto sums =
      with_reals(call.result().dtype, [&]<class T>(T) { return product<T>(rows, b, op.trans_b); });
  for (auto& sum : sums) sum *= op.alpha;
  if (call.optional(2) != nullptr) {
    FLEETFIT_ASSIGN(const auto c, broadcast(call.input(2), call.result().shape));
    const auto addends = read<double>(c);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += op.beta * addends[i];
  }
  return one(write(call.result(), sums));
}

Values run(const MatMul& op, const Call& call) {
  auto a = call.input(0);
  auto b = call.input(1);
  if (a.shape.size() == 1) a.shape.insert(a.shape.begin(), 1);
  if (b.shape.size() == 1) b.shape.push_back(1);
  if (op.trans_a) a = swapped(a);
  if (op.trans_b) b = swapped(b);
  FLEETFIT_ASSIGN(const auto batch, pair_matrices(a, b));
  return one(multiply_batch(a, b, batch, call.result()));
}

Values run(const MultiHeadAttention& op, const Call& call) {
  FLEETFIT_TRY(check_attention(call));
  const auto q = project(call.input(0), call.input(3), call.input(4));
  const auto k = project(call.input(1), call.input(5), call.input(6));
  const auto v = project(call.input(2), call.input(7), call.input(8));
  const auto width = call.input(3).shape[0];
  const auto& shape = call.input(0).shape;
  const auto queries = shape[shape.size() - 2];
  const auto keys = call.input(1).shape[shape.size() - 2];
  const auto batch = shape.size() == 3 ? shape[0] : 1;

  std::vector<double> attended(batch * queries * width);
  for (std::int64_t n = 0; n < batch; ++n) {
    attend_all({{q.data() + n * queries * width, queries, width},
                {k.data() + n * keys * width, keys, width},
                {v.data() + n * keys * width, keys, width}},
               op.heads, attended.data() + n * queries * width);
  }
  const auto rows = write(Form{DType::f32, {batch * queries, width}}, attended);
  return one(write(call.result(), project(rows, call.input(9), call.input(10))));
}

}  // namespace fleetfit::graph::interpreter
