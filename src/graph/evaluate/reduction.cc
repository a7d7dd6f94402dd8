#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

/// The tensor with the given axes last, and how many elements those hold together.
struct Runs {
  Value numbers;
  std::int64_t length = 1;
};

Result<Runs> runs_along(const Value& x, const Ints& axes) {
  std::vector<bool> chosen(x.shape.size(), axes.empty());
  for (const auto axis : axes) {
    FLEETFIT_ASSIGN(const auto position, resolve_axis(axis, x.shape.size()));
    chosen[position] = true;
  }
  Ints perm;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) perm.push_back(static_cast<std::int64_t>(i));
  }
  std::int64_t length = 1;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    perm.push_back(static_cast<std::int64_t>(i));
    length *= x.shape[i];
  }
  return Runs{permuted(x, perm), length};
}

double sum_of(std::span<const double> run, double (*term)(double)) {
  double sum = 0;
  for (const auto x : run) sum += term(x);
  return sum;
}

double extreme_of(std::span<const double> run, double start, bool largest) {
  for (const auto x : run) {
    if (x != x) return x;
    if (largest ? x > start : x < start) start = x;
  }
  return start;
}

double log_sum_exp(std::span<const double> run) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double highest = extreme_of(run, -kInfinity, true);
  if (std::isinf(highest)) return highest;
  double sum = 0;
  for (const auto x : run) sum += std::exp(x - highest);
  return highest + std::log(sum);
}

double reduce(ReduceKind kind, std::span<const double> run) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto same = [](double x) { return x; };
  const auto square = [](double x) { return x * x; };
  switch (kind) {
    case ReduceKind::mean:
      return sum_of(run, same) / static_cast<double>(run.size());
    case ReduceKind::sum:
      return sum_of(run, same);
    case ReduceKind::max:
      return extreme_of(run, -kInfinity, true);
    case ReduceKind::min:
      return extreme_of(run, kInfinity, false);
    case ReduceKind::prod:
      return std::accumulate(run.begin(), run.end(), 1.0, std::multiplies<>());
    case ReduceKind::l1:
      return sum_of(run, [](double x) { return std::abs(x); });
    case ReduceKind::l2:
      return std::sqrt(sum_of(run, square));
    case ReduceKind::sum_square:
      return sum_of(run, square);
    case ReduceKind::log_sum:
      return std::log(sum_of(run, same));
    case ReduceKind::log_sum_exp:
      return log_sum_exp(run);
  }
  return 0;
}

/// Whole numbers stay exact where the result is one; sums wrap around.
std::int64_t reduce(ReduceKind kind, std::span<const std::int64_t> run) {
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  std::uint64_t product = 1;
  for (const auto x : run) {
    const auto bits = static_cast<std::uint64_t>(x);
    sum += bits;
    squares += bits * bits;
    product *= bits;
  }
  switch (kind) {
    case ReduceKind::sum:
      return static_cast<std::int64_t>(sum);
    case ReduceKind::prod:
      return static_cast<std::int64_t>(product);
    case ReduceKind::sum_square:
      return static_cast<std::int64_t>(squares);
    case ReduceKind::max:
      return run.empty() ? std::numeric_limits<std::int64_t>::min() : std::ranges::max(run);
    case ReduceKind::min:
      return run.empty() ? std::numeric_limits<std::int64_t>::max() : std::ranges::min(run);
    default:
      return truncate<std::int64_t>(reduce(kind, std::vector<double>(run.begin(), run.end())));
  }
}

template <class T>
Value reduce_all(ReduceKind kind, const Runs& runs, const Form& form) {
  const auto numbers = read<T>(runs.numbers);
  std::vector<T> results;
  for (std::int64_t i = 0; i < elements(form.shape); ++i) {
    results.push_back(reduce(kind, std::span(numbers).subspan(i * runs.length, runs.length)));
  }
  return write(form, results);
}

/// Whether the element at `index` comes before the best so far. NaN counts as the largest number.
template <class T>
bool ranks_before(T a, T b, bool largest) {
  if (a != a || b != b) return largest ? (a != a && b == b) : (a == a && b != b);
  return largest ? a > b : a < b;
}

template <class T>
std::int64_t extreme_index(std::span<const T> run, const ArgExtreme& op) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < std::ssize(run); ++i) {
    const bool better = ranks_before(run[i], run[best], !op.smallest);
    const bool equal = !better && !ranks_before(run[best], run[i], !op.smallest);
    if (better || (equal && op.select_last)) best = i;
  }
  return best;
}

template <class T>
Value extreme_indices(const ArgExtreme& op, const Runs& runs, const Form& form) {
  const auto numbers = read<T>(runs.numbers);
  std::vector<std::int64_t> results;
  for (std::int64_t i = 0; i < elements(form.shape); ++i) {
    results.push_back(
        extreme_index(std::span<const T>(numbers).subspan(i * runs.length, runs.length), op));
  }
  return write(form, results);
}

/// Positions of a run's elements, the best first; among equals the first.
template <class T>
Ints ranking(std::span<const T> run, bool largest) {
  Ints order(run.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return ranks_before(run[a], run[b], largest);
  });
  return order;
}

template <class T>
std::vector<std::int64_t> top_indices(const Runs& runs, std::int64_t k, bool largest) {
  const auto numbers = read<T>(runs.numbers);
  std::vector<std::int64_t> indices;
  if (runs.length == 0) return indices;
  for (std::size_t first = 0; first < numbers.size(); first += runs.length) {
    const auto order = ranking(std::span<const T>(numbers).subspan(first, runs.length), largest);
    indices.insert(indices.end(), order.begin(), order.begin() + k);
  }
  return indices;
}

/// Brings the last axis to `axis`.
Value last_axis_to(const Value& x, std::size_t axis) {
  Ints perm(x.shape.size());
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  std::rotate(perm.begin() + static_cast<std::ptrdiff_t>(axis), perm.end() - 1, perm.end());
  return permuted(x, perm);
}

}  // namespace

Values run(const Reduce& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto runs, runs_along(call.input(0), op.axes));
  if (is_float(call.input(0).dtype)) return one(reduce_all<double>(op.kind, runs, call.result()));
  return one(reduce_all<std::int64_t>(op.kind, runs, call.result()));
}

Values run(const ArgExtreme& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto runs, runs_along(call.input(0), {op.axis}));
  if (runs.length == 0) return misfit("there is nothing to choose from");
  if (is_float(call.input(0).dtype)) return one(extreme_indices<double>(op, runs, call.result()));
  return one(extreme_indices<std::int64_t>(op, runs, call.result()));
}

Values run(const TopK& op, const Call& call) {
  const auto& x = call.input(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, x.shape.size()));
  FLEETFIT_ASSIGN(const auto runs, runs_along(x, {op.axis}));
  const auto k = call.result().shape[axis];
  const auto indices = is_float(x.dtype) ? top_indices<double>(runs, k, op.largest)
                                         : top_indices<std::int64_t>(runs, k, op.largest);
  Ints places(indices.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<std::int64_t>(i) / k * runs.length + indices[i];

  auto shape = runs.numbers.shape;
  shape.back() = k;
  const auto values = reshaped(take(reshaped(runs.numbers, {elements(x.shape)}), {places}), shape);
  std::vector<Value> results{last_axis_to(values, axis)};
  if (call.results.size() > 1) {
    results.push_back(last_axis_to(write(Form{DType::i64, shape}, indices), axis));
  }
  return results;
}

}  // namespace fleetfit::graph::interpreter
